//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// short is a timeout for a server that hangs. A test of one that answers has the default.
const short = 300 * time.Millisecond

// A server that is frozen keeps its connections and answers nothing.
func TestAFrozenServer(t *testing.T) {
	testenv.Long(t, "freezes a server")
	t.Parallel()
	server := postgrestest.Start(t)
	pet := create(t, open(t, server.URL("postgres"), postgres.Options{}))
	s := openSoon(t, server.URL("postgres")+"&pool_max_conns=2&connect_timeout=1", postgres.Options{Timeout: short})
	eventually(t, "a connection is ready", func() error { return s.Ping(t.Context()) })
	server.Freeze()
	for range 4 { // more than there are connections
		_, err := s.Pet(t.Context(), pet.ID)
		checkUnavailable(t, err)
		_, err = s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
		checkUnavailable(t, err)
		checkUnavailable(t, s.Ping(t.Context()))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := s.Pet(ctx, pet.ID); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Pet = %v, want an error that wraps DeadlineExceeded", err)
	}
	server.Thaw()
	eventually(t, "the server answers", func() error {
		_, err := s.Pet(t.Context(), pet.ID)
		return errors.Join(err, s.Ping(t.Context()))
	})
	eventually(t, "the server stores pets", func() error {
		_, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
		return err
	})
}

// A primary that hangs, such as one whose machine has lost its network, is replaced by a
// standby.
func TestFailoverFromAFrozenServer(t *testing.T) {
	testenv.Long(t, "freezes a server with a standby")
	t.Parallel()
	primary := postgrestest.Start(t)
	standby := primary.StartStandby()
	primary.Synchronous()
	url := strings.Replace(primary.URL("postgres"), primary.Addr, primary.Addr+","+standby.Addr, 1)
	s := openSoon(t, url+"&connect_timeout=1", postgres.Options{Timeout: 2 * time.Second})
	w := startWriters(t, s, 8)
	w.more(50)
	primary.Freeze()
	standby.Promote()
	w.more(50)
	w.check()
}

// An address at which something listens and never answers.
func TestAnAddressThatNeverAnswers(t *testing.T) {
	testenv.Long(t, "waits for timeouts")
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	url := "postgres://petstore:" + postgrestest.Password + "@" + l.Addr().String() + "/pets?sslmode=disable&connect_timeout=1"
	_, err = postgres.Open(t.Context(), url, postgres.Options{})
	checkUnavailable(t, err, "cannot connect", l.Addr().String())
	_, _, err = postgres.Migrate(t.Context(), url)
	checkUnavailable(t, err, "cannot connect")
}

func TestOpenErrors(t *testing.T) {
	url := postgrestest.Database(t)
	for name, tt := range map[string]struct {
		url  string
		want []string
	}{
		"another scheme":   {"mysql://petstore:" + postgrestest.Password + "@localhost/pets", []string{"must begin with postgres://"}},
		"a bad port":       {"postgres://petstore:" + postgrestest.Password + "@localhost:port/pets", []string{"the URL of the PostgreSQL database"}},
		"a bad parameter":  {url + "&pool_max_conns=many", []string{"pool_max_conns"}},
		"a wrong password": {strings.Replace(url, ":"+postgrestest.Password, ":"+postgrestest.Password+"x", 1), []string{"check the user and the password"}},
		"no database":      {strings.Replace(url, "?", "x?", 1), []string{"create the database first"}},
		"no such setting":  {url + "&petstore_setting=1", []string{"unrecognized configuration parameter"}},
	} {
		_, err := postgres.Open(t.Context(), tt.url, postgres.Options{})
		checkText(t, err, tt.want...)
		if errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: Open = %v, which does not pass by itself, and wraps ErrUnavailable", name, err)
		}
	}
	_, err := postgres.Open(t.Context(), "postgres://petstore:"+postgrestest.Password+"@127.0.0.1:1,127.0.0.1:2/pets", postgres.Options{})
	checkUnavailable(t, err, "cannot connect", "127.0.0.1:1", "127.0.0.1:2")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := postgres.Open(ctx, url, postgres.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Open with a canceled context = %v, want an error that wraps Canceled", err)
	}
	if _, err := postgres.Open(t.Context(), url, postgres.Options{Timeout: -1}); err == nil || !strings.Contains(err.Error(), "Options.Timeout must not be negative") {
		t.Errorf("Open with a negative timeout = %v", err)
	}
}
