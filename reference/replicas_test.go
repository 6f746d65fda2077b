//go:build unix

package main_test

import (
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/animalstore/gatehouse/internal/redistest"
)

// A fleet is replicas of the server: processes with one database, one Redis and the same
// settings.
type fleet struct {
	dir      string // the settings, petstore.yaml, and a SQLite database are here
	database string // the setting
	replicas []*process
	decided  uint64 // decisions without Redis of replicas that have ended
}

// newFleet starts three replicas at once, with settings in addition to those that they share.
func newFleet(t *testing.T, databaseName, settings string) *fleet {
	t.Helper()
	f := &fleet{dir: t.TempDir(), database: databaseName}
	writeFile(t, f.dir, "petstore.yaml", fmt.Sprintf(`
database: %q
redis: redis://%s
drain_delay: 1s
%s`, databaseName, startRedis(t), settings))
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if p := f.launch(t); p != nil {
				mu.Lock()
				defer mu.Unlock()
				f.replicas = append(f.replicas, p)
			}
		})
	}
	wg.Wait()
	if len(f.replicas) != 3 {
		t.FailNow()
	}
	return f
}

// launch starts a replica without adding it to the fleet. It returns nil if that fails. It may be
// called on any goroutine.
func (f *fleet) launch(t *testing.T) *process {
	cmd := exec.Command("petstore", serveArgs([]string{"--config=petstore.yaml"})...)
	cmd.Dir, cmd.Env = f.dir, environment()
	p, err := launchCommand(cmd, t.TempDir())
	if err != nil {
		t.Error(err)
		return nil
	}
	t.Cleanup(p.kill)
	return p
}

// petstore runs a command with the settings of the fleet.
func (f *fleet) petstore(t *testing.T, args ...string) string {
	t.Helper()
	return petstore(t, f.dir, append(args, "--config=petstore.yaml")...)
}

// key makes a key of an owner with one quota.
func (f *fleet) key(t *testing.T, owner, quota string, args ...string) string {
	t.Helper()
	return f.petstore(t, append([]string{"keys", "create", "--name=test", "--owner=" + owner, "--plan=enterprise", "--quota=" + quota}, args...)...)
}

// roomyKey makes a key whose quota no test uses up.
func (f *fleet) roomyKey(t *testing.T, owner string) string {
	t.Helper()
	return f.key(t, owner, "1000000000/8784h")
}

// fallbacks returns how many requests were decided without Redis.
func (f *fleet) fallbacks(t *testing.T) uint64 {
	t.Helper()
	n := f.decided
	for _, p := range f.replicas {
		n += fallbacksIn(mustAsk(t, 200, "GET", p.admin+"/metrics", "", "").body)
	}
	return n
}

// fallbacksIn returns how many requests a replica with these metrics decided without Redis.
func fallbacksIn(metrics []byte) (n uint64) {
	for line := range strings.Lines(string(metrics)) {
		if strings.HasPrefix(line, "gatehouse_failover_fallbacks_total") {
			value, _ := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
			n += uint64(value)
		}
	}
	return n
}

// restart ends a replica the gentle way, and starts one instead of it.
func (f *fleet) restart(t *testing.T, i int) {
	t.Helper()
	p := f.replicas[i]
	must(t, p.cmd.Process.Signal(syscall.SIGTERM))
	// Clients send it nothing in the end, so that the last answer is complete.
	decided := uint64(0)
	for {
		a, err := ask(t.Context(), "GET", p.admin+"/metrics", "", "")
		if err != nil {
			break
		}
		decided = max(decided, fallbacksIn(a.body)) // in the end it has no metrics
		time.Sleep(10 * time.Millisecond)
	}
	f.decided += decided
	must(t, p.wait())
	if f.replicas[i] = f.launch(t); f.replicas[i] == nil {
		t.FailNow()
	}
}

// stopAll ends all replicas at once, the gentle way.
func (f *fleet) stopAll(t *testing.T) {
	t.Helper()
	errs := make([]error, len(f.replicas))
	var wg sync.WaitGroup
	for i, p := range f.replicas {
		wg.Go(func() { errs[i] = p.stop() })
	}
	wg.Wait()
	must(t, errors.Join(errs...))
}

// undisturbed runs a scenario until Redis has made every decision in it, and then checks
// what came of it. A replica decides by itself if Redis does not answer within its budget,
// as on a machine that is busy with something else. Each attempt has a name of its own.
func (f *fleet) undisturbed(t *testing.T, scenario func(name string) (check func())) {
	t.Helper()
	const attempts = 5
	for i := range attempts {
		before := f.fallbacks(t)
		check := scenario(fmt.Sprint("attempt-", i+1))
		disturbed := f.fallbacks(t) - before
		if disturbed == 0 {
			check()
			return
		}
		t.Logf("attempt %d: %d decisions without Redis, because it took too long", i+1, disturbed)
	}
	t.Skipf("skipped: in each of %d attempts a decision of Redis took too long, because the machine is busy", attempts)
}

// checkUsed fails unless each replica says that so much of the one quota of a key is used.
func (f *fleet) checkUsed(t *testing.T, key string, want int64) {
	t.Helper()
	for i, p := range f.replicas {
		if got := used(t, p, key); got != want {
			t.Errorf("replica %d says that %d requests are counted, want %d", i+1, got, want)
		}
	}
}

// adminListen is the flag for commands that call the admin listener of a replica.
func adminListen(p *process) string {
	return "--admin-listen=" + strings.TrimPrefix(p.admin, "http://")
}

// startRedis starts the Redis of several replicas, which ends with the test: redis-server if
// the machine has it, and otherwise one in this process. It returns the address.
func startRedis(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Log("redis-server is not on this machine, so miniredis is used")
		return miniredis.RunT(t).Addr()
	}
	return redistest.Start(t).Addr
}
