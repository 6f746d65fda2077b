//go:build unix

package postgres_test

import (
	"context"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
)

// stop stops the processes of all connections of a store, but not their server, until the
// test ends. It returns how many there are.
func stop(t *testing.T, url string) int {
	t.Helper()
	pids := query[[]int](t, url, "SELECT array_agg(pid) FROM pg_stat_activity WHERE application_name = 'petstore' AND datname = current_database()")
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	}
	return len(pids)
}

// connect has a store make connections.
func connect(t *testing.T, s *postgres.Store, conns int) {
	t.Helper()
	eventually(t, "there are connections", func() error { return s.Connect(t.Context(), conns) })
}

// If the idle connections hang, as after the loss of a network, one call finds that out, and
// not one for each connection.
func TestIdleConnectionsThatHang(t *testing.T) {
	testenv.Long(t, "waits for timeouts")
	url := postgrestest.Database(t)
	s := open(t, url+"&pool_max_conns=8&pool_ping_timeout=1m", postgres.Options{Timeout: 3 * time.Second})
	connect(t, s, 8)
	n := stop(t, url)
	time.Sleep(1100 * time.Millisecond) // then the pool checks a connection before a call gets it
	failed := 0
	for range n {
		if err := s.Ping(t.Context()); err != nil {
			checkUnavailable(t, err)
			failed++
		}
	}
	if failed > 2 {
		t.Errorf("%d calls failed with %d connections that hang, want at most 2", failed, n)
	}
}

// Connections that hang in calls do not count as connections of the pool for long.
func TestConnectionsThatHangInCalls(t *testing.T) {
	testenv.Long(t, "waits for timeouts")
	url := postgrestest.Database(t)
	s := openSoon(t, url+"&pool_max_conns=2&connect_timeout=1", postgres.Options{Timeout: time.Second})
	connect(t, s, 2)
	stop(t, url)
	begin := time.Now()
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() { _, _ = s.Pet(context.Background(), 1) })
	}
	calls.Wait()
	eventually(t, "there are other connections", func() error { return s.Ping(t.Context()) })
	if d := time.Since(begin); d > 15*time.Second { // which is how long pgx waits
		t.Errorf("two connections that hang took %v to be replaced, want seconds", d)
	}
}
