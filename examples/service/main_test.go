package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
)

// plan has one window, which does not end during a test.
var plan = ratelimit.MustPlan("test", ratelimit.Penalty{}, ratelimit.Quota{Limit: 10, Window: fixedwindow.MaxLength})

// serve runs the service while use sends requests, and returns the error of run.
func serve(t *testing.T, redisURL, file string, use func(url, key string)) error {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testcheck.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, l, redisURL, file, plan, w)
		w.CloseWithError(err)
		ended <- err
	}()
	buf := make([]byte, 200)
	n, err := r.Read(buf)
	key := regexp.MustCompile(`demo_\w+`).FindString(string(buf[:n]))
	if err != nil || key == "" {
		t.Fatalf("the service prints %q, %v, want a curl line with a key", buf[:n], err)
	}
	use("http://"+l.Addr().String()+"/hello", key)
	stop()
	return <-ended
}

// get returns the status and what remains of the quota.
func get(t *testing.T, url, key string) (int, string) {
	t.Helper()
	r := testcheck.Must(http.NewRequestWithContext(t.Context(), "GET", url, nil))
	r.Header.Set("Authorization", "Bearer "+key)
	resp := testcheck.Must(http.DefaultClient.Do(r))
	defer resp.Body.Close()
	return resp.StatusCode, resp.Header.Get("X-RateLimit-Remaining")
}

func TestUsageSurvivesARestart(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, want := range []string{"9", "8", "7"} {
		err := serve(t, "", "usage.json", func(url, key string) {
			if status, remaining := get(t, url, key); status != 200 || remaining != want {
				t.Errorf("GET: %d with %s remaining, want 200 with %s", status, remaining, want)
			}
			if status, _ := get(t, url, "demo_wrong"); status != 401 {
				t.Errorf("GET with a wrong key: %d, want 401", status)
			}
		})
		if err != nil {
			t.Fatalf("run = %v, want nil after a graceful stop", err)
		}
	}
}

func TestServiceWithoutAnAnsweringRedis(t *testing.T) {
	err := serve(t, "redis://127.0.0.1:1", filepath.Join(t.TempDir(), "unused"), func(url, key string) {
		for _, want := range []string{"9", "8"} {
			if status, remaining := get(t, url, key); status != 200 || remaining != want {
				t.Errorf("GET: %d with %s remaining, want 200 with %s of the local engine", status, remaining, want)
			}
		}
	})
	if err == nil || !strings.Contains(err.Error(), "not merged") {
		t.Errorf("run = %v, want an error that says what Redis did not get", err)
	}
}

func TestRedisMustBeAURL(t *testing.T) {
	for _, text := range []string{"127.0.0.1:6379", "localhost:6379", "redis"} {
		err := run(t.Context(), nil, text, "", plan, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "-redis must be a URL such as redis://127.0.0.1:6379") {
			t.Errorf("run with -redis %s = %v, want an error that shows a URL", text, err)
		}
	}
}
