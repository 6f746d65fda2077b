package server

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/config"
)

var must = testcheck.NoError

func testListeners(t *testing.T) *listeners {
	t.Helper()
	var l listeners
	var err error
	for _, p := range []*net.Listener{&l.api, &l.admin} {
		*p, err = net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
	}
	t.Cleanup(l.close)
	return &l
}

func testSettings(t *testing.T) *config.Config {
	t.Helper()
	c := config.Default()
	c.Database = filepath.Join(t.TempDir(), "petstore.db")
	return c
}

// quiet are the options of a server that says nothing.
var quiet = Options{Logger: slog.New(slog.DiscardHandler), Notice: io.Discard}

// run runs a server. Its end stops it and checks that it ends well.
func run(t *testing.T, s *server, l *listeners) (end func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx, l) }()
	return func() {
		t.Helper()
		stop()
		if err := <-ended; err != nil {
			t.Errorf("run = %v, want nil", err)
		}
	}
}

// A server of which one listener fails must not go on with half of what it is for.
func TestRunEndsWhenOneListenerFails(t *testing.T) {
	for _, which := range []string{"api", "admin"} {
		t.Run(which, func(t *testing.T) {
			l := testListeners(t)
			if which == "api" {
				l.api.Close()
			} else {
				l.admin.Close()
			}
			ended := make(chan error, 1)
			go func() { ended <- newServer(testSettings(t), quiet).run(t.Context(), l) }()
			select {
			case err := <-ended:
				if err == nil {
					t.Error("run = nil, want the listener's error")
				}
			case <-time.After(time.Minute):
				t.Error("run goes on")
			}
		})
	}
}

// get returns the answer of the admin listener.
func (l *listeners) get(t *testing.T, path string) (status int, body string) {
	t.Helper()
	resp, err := http.Get("http://" + l.admin.Addr().String() + path)
	must(t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, string(data)
}

// However long usage takes to load, health and readiness answer.
func TestAdminListenerAnswersDuringTheStart(t *testing.T) {
	l := testListeners(t)
	loading, loaded := make(chan bool), make(chan bool)
	s := newServer(testSettings(t), quiet)
	s.open = func(ctx context.Context) error {
		s.setStep("loading usage")
		close(loading)
		<-loaded
		return s.openState(ctx)
	}
	end := run(t, s, l)
	<-loading
	if status, _ := l.get(t, "/healthz"); status != 200 {
		t.Errorf("/healthz while usage is loaded: status %d, want 200", status)
	}
	status, body := l.get(t, "/readyz")
	if want := `"server":"starting: loading usage"`; status != 503 || !strings.Contains(body, want) {
		t.Errorf("/readyz while usage is loaded: %d %s, want 503 and %s", status, body, want)
	}
	if status, body := l.get(t, "/bans"); status != 503 {
		t.Errorf("/bans while usage is loaded: %d %s, want 503", status, body)
	}
	close(loaded)
	for status = 0; status != 200; {
		status, body = l.get(t, "/readyz")
		if status == 503 && !strings.Contains(body, "starting") {
			t.Fatalf("/readyz: %s, want that it starts or is ready", body)
		}
	}
	if status, body := l.get(t, "/bans"); status != 200 {
		t.Errorf("/bans afterwards: %d %s, want 200", status, body)
	}
	for _, check := range s.checks { // a server with a full disk goes on serving
		if needed := check.Name == "server" || check.Name == "database"; check.Advisory == needed {
			t.Errorf("the check %s is advisory: %v", check.Name, check.Advisory)
		}
	}
	end()
}

// A server that is told to end while it starts has nothing to complain about.
func TestTheStartCanBeInterrupted(t *testing.T) {
	for name, open := range map[string]func(context.Context, *server) error{
		"while it opens": func(ctx context.Context, _ *server) error {
			<-ctx.Done()
			return errors.New("interrupted (9)")
		},
		"after it opened": func(ctx context.Context, s *server) error {
			err := s.openState(context.WithoutCancel(ctx))
			<-ctx.Done()
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(testSettings(t), quiet)
			s.open = func(ctx context.Context) error { return open(ctx, s) }
			run(t, s, testListeners(t))()
		})
	}
}

// A usage file that cannot be read must not keep the server from starting, and is kept. Package
// memory has what makes a file unreadable.
func TestAUsageFileThatCannotBeReadIsRenamed(t *testing.T) {
	c := testSettings(t)
	var log bytes.Buffer
	o := Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Notice: io.Discard}
	start := func() *server {
		t.Helper()
		s := newServer(c, o)
		must(t, s.openState(t.Context()))
		return s
	}
	usagePath, damaged := c.UsagePath(), []byte("SQLite format 3\x00") // as of an older version
	must(t, os.WriteFile(usagePath, damaged, 0o600))
	s := start()
	must(t, errors.Join(s.limiter.Ban(t.Context(), "owner:bob", time.Hour, ""), s.close()))
	if !strings.Contains(log.String(), "level=WARN msg=\"the usage file cannot be read and was renamed") {
		t.Errorf("the log is %q, want a warning", log.String())
	}
	renamed, err := filepath.Glob(usagePath + ".damaged-????????T??????.???Z")
	if err != nil || len(renamed) != 1 {
		t.Fatalf("renamed file is %v, %v; want one file whose name ends with the time", renamed, err)
	}
	if kept, err := os.ReadFile(renamed[0]); err != nil || !bytes.Equal(kept, damaged) {
		t.Errorf("the renamed file is not the one that was damaged (%v)", err)
	}
	s = start()
	defer s.close()
	if bans, err := s.limiter.Bans(t.Context()); err != nil || len(bans) != 1 || bans[0].Subject != "owner:bob" {
		t.Errorf("bans after another start: %v, %v; want bob's from the new file", bans, err)
	}
}

// A server waits for one that is about to end, and not for one that goes on.
func TestOneServerHasTheUsageFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "usage")
		_, _, closeFile, err := openUsage(t.Context(), file)
		must(t, err)
		began := time.Now()
		_, _, _, err = openUsage(t.Context(), file)
		if waited := time.Since(began); !errors.Is(err, ratelimit.ErrUnavailable) || waited != takeoverTimeout {
			t.Errorf("openUsage beside another server: %v after %v, want that the file is in use after %v", err, waited, takeoverTimeout)
		}
		time.AfterFunc(takeoverTimeout/2, func() { must(t, closeFile()) })
		_, _, closeFile, err = openUsage(t.Context(), file)
		must(t, err)
		must(t, closeFile())
	})
}

var sink []byte

// collections returns how many collections the garbage of a few thousand requests takes.
func collections() int {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 32 << 10 {
		sink = make([]byte, 1<<10)
	}
	runtime.ReadMemStats(&after)
	return int(after.NumGC - before.NumGC)
}

func TestReserveMakesCollectionsRare(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	release := reserveHeap()
	if n := collections(); n > 0 {
		t.Errorf("%d collections for 32 MiB with a reserve of %d MiB, want none", n, heapReserve>>20)
	}
	release()
	t.Setenv("GOGC", "100")
	defer reserveHeap()()
	if n := collections(); n == 0 {
		t.Error("no collections for 32 MiB although the operator has set GOGC")
	}
}

// A newer server that is started beside the one in use must not upgrade its database.
func TestARefusedServerUpgradesNothing(t *testing.T) {
	c := testSettings(t)
	c.UsageFile = filepath.Join(t.TempDir(), "usage.db")
	s := newServer(c, quiet)
	must(t, s.openState(t.Context()))
	defer s.close()
	db, err := sql.Open("sqlite", c.Database)
	must(t, err)
	defer db.Close()
	version := func() (v int64) {
		t.Helper()
		must(t, db.QueryRow("SELECT max(version_id) FROM goose_db_version").Scan(&v))
		return v
	}
	// As if the migrations were still to come.
	if _, err := db.Exec("DELETE FROM goose_db_version WHERE version_id > 0"); err != nil {
		t.Fatal(err)
	}
	err = newServer(c, quiet).openState(t.Context())
	if want := "usage_file: another petstore uses " + c.UsageFile; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("open beside a running server = %v, want %s", err, want)
	}
	if got := version(); got != 0 {
		t.Errorf("the schema is %d after the refusal, want 0 as before", got)
	}
}
