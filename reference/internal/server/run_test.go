package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
)

func testListeners(t *testing.T) *listeners {
	t.Helper()
	var l listeners
	var err error
	for _, p := range []*net.Listener{&l.api, &l.admin} {
		if *p, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(l.close)
	return &l
}

// Tests do not notify the systemd that runs them.
func TestMain(m *testing.M) {
	os.Unsetenv("NOTIFY_SOCKET")
	m.Run()
}

func testSettings(t *testing.T) *config.Config {
	t.Helper()
	c := config.Default()
	c.Database = filepath.Join(t.TempDir(), "petstore.db")
	return c
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
			o := Options{Logger: slog.New(slog.DiscardHandler), Notice: io.Discard}
			go func() { ended <- runOn(t.Context(), testSettings(t), o, l, open) }()
			select {
			case err := <-ended:
				if err == nil {
					t.Error("runOn = nil, want the listener's error")
				}
			case <-time.After(time.Minute):
				t.Error("runOn goes on")
			}
		})
	}
}

// get returns the answer of the admin listener.
func (l *listeners) get(t *testing.T, path string) (status int, body string) {
	t.Helper()
	resp, err := http.Get("http://" + l.admin.Addr().String() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// However long usage takes to load, health and readiness answer.
func TestAdminListenerAnswersDuringTheStart(t *testing.T) {
	l := testListeners(t)
	loading, loaded := make(chan bool), make(chan bool)
	slow := func(ctx context.Context, c *config.Config, o Options, p *startup) (*state, error) {
		p.setStep("loading usage")
		close(loading)
		<-loaded
		return open(ctx, c, o, p)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	o := Options{Logger: slog.New(slog.DiscardHandler), Notice: io.Discard}
	go func() { ended <- runOn(ctx, testSettings(t), o, l, slow) }()
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
	stop()
	if err := <-ended; err != nil {
		t.Errorf("runOn = %v", err)
	}
}

// A server that is told to end while it starts has nothing to complain about.
func TestTheStartCanBeInterrupted(t *testing.T) {
	for name, opener := range map[string]opener{
		"while it opens": func(ctx context.Context, _ *config.Config, _ Options, _ *startup) (*state, error) {
			<-ctx.Done()
			return nil, errors.New("interrupted (9)")
		},
		"after it opened": func(ctx context.Context, c *config.Config, o Options, p *startup) (*state, error) {
			s, err := open(context.WithoutCancel(ctx), c, o, p)
			<-ctx.Done()
			return s, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			c := testSettings(t)
			ended := make(chan error, 1)
			o := Options{Logger: slog.New(slog.DiscardHandler), Notice: io.Discard}
			go func() { ended <- runOn(ctx, c, o, testListeners(t), opener) }()
			stop()
			if err := <-ended; err != nil {
				t.Errorf("runOn = %v, want nil", err)
			}
		})
	}
}

func TestADamagedUsageFileIsRenamed(t *testing.T) {
	noise := bytes.Repeat([]byte("noise"), 20_000)
	for name, damage := range map[string]func(t *testing.T, path string){
		"not a database": func(t *testing.T, path string) {
			if err := os.WriteFile(path, noise, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"overwritten behind its first page": func(t *testing.T, path string) {
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			copy(whole[4096:], noise)
			if err := os.WriteFile(path, whole, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"without its secret": func(t *testing.T, path string) {
			db, err := sqlite.OpenUsage(t.Context(), path, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(db.SaveUsage(t.Context(), []byte{1, 2}, nil), db.Close()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := testSettings(t)
			var log bytes.Buffer
			o := Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Notice: io.Discard}
			start := func() *state {
				t.Helper()
				s, err := open(t.Context(), c, o, new(startup))
				if err != nil {
					t.Fatalf("open = %v", err)
				}
				return s
			}
			s := start()
			if err := errors.Join(s.limiter.Ban(t.Context(), "owner:eve", time.Hour), s.close()); err != nil {
				t.Fatal(err)
			}
			usagePath := sqlite.UsagePath(c.Database)
			damage(t, usagePath)
			damaged, err := os.ReadFile(usagePath)
			if err != nil {
				t.Fatal(err)
			}

			s = start()
			if err := errors.Join(s.limiter.Ban(t.Context(), "owner:bob", time.Hour), s.close()); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(log.String(), "level=WARN msg=\"the usage file is damaged and was renamed") {
				t.Errorf("the log is %q, want a warning", log.String())
			}
			renamed, err := filepath.Glob(usagePath + ".damaged-????????T??????.???Z")
			if err != nil || len(renamed) != 1 {
				t.Fatalf("renamed file is %v, %v; want one file whose name ends with the time", renamed, err)
			}
			if kept, err := os.ReadFile(renamed[0]); err != nil || !bytes.Equal(kept, damaged) {
				t.Errorf("the file renamed file is not the one that was damaged (%v)", err)
			}
			s = start()
			defer s.close()
			if bans, err := s.limiter.Bans(t.Context()); err != nil || len(bans) != 1 || bans[0].Subject != "owner:bob" {
				t.Errorf("bans after another start: %v, %v; want bob's from the new file", bans, err)
			}
		})
	}
}
