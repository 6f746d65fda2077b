package apierror_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/testcheck"
)

// fragile panics under a name that can be looked for in a stack.
func fragile(http.ResponseWriter, *http.Request) { panic(secret) }

func TestRecoverBeforeTheResponseHasBegun(t *testing.T) {
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		panic   string // in the log
	}{
		{"at once", fragile, secret},
		{"error", func(http.ResponseWriter, *http.Request) { panic(errors.New(secret)) }, secret},
		{"wrapped ErrAbortHandler", func(http.ResponseWriter, *http.Request) { panic(fmt.Errorf("copy: %w", http.ErrAbortHandler)) }, "copy: net/http: abort Handler"},
		{"nil", func(http.ResponseWriter, *http.Request) { panic(nil) }, new(runtime.PanicNilError).Error()},
		{"incomparable value", func(http.ResponseWriter, *http.Request) { panic([]string{secret}) }, "[" + secret + "]"},
		{"after early hints", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			panic(secret)
		}, secret},
		{"of an impossible status", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(0) }, "invalid WriteHeader code 0"},
		{"after a copy from a source that failed at once", func(w http.ResponseWriter, r *http.Request) {
			_, err := io.Copy(w, iotest.ErrReader(errors.New(secret)))
			panic(err)
		}, secret},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var logs logbook
			rs := &apierror.Responder{Logger: logs.logger(), RequestID: func(context.Context) string { return "req-1" }}
			recovering := rs.Recover(tt.handler)
			srv := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-RateLimit-Remaining", "59")
				recovering.ServeHTTP(w, r)
			}))
			res := do(t, srv, http.MethodGet, "/", "Authorization", "Bearer key")

			golden(t, "internal.json", res.body)
			if res.StatusCode != 500 || res.Header.Get("X-RateLimit-Remaining") != "59" {
				t.Errorf("status %d, X-RateLimit-Remaining %q; want 500, 59", res.StatusCode, res.Header.Get("X-RateLimit-Remaining"))
			}
			lines := logs.lines(t)
			if len(lines) != 1 {
				t.Fatalf("%d log lines, want 1: %s", len(lines), &logs)
			}
			for key, want := range map[string]any{
				"level": "ERROR", "msg": "handler panicked", "request_id": "req-1", "method": "GET", "panic": tt.panic, "aborted": false,
			} {
				if got := lines[0][key]; got != want {
					t.Errorf("log: %s is %q, want %q", key, got, want)
				}
			}
			if stack, _ := lines[0]["stack"].(string); !strings.Contains(stack, "apierror_test.") {
				t.Errorf("the stack does not lead to the panic:\n%s", stack)
			}
			if strings.Contains(logs.String(), "Bearer") {
				t.Errorf("log has the Authorization field: %s", &logs)
			}
		})
	}
}

// A middleware that copies the request keeps the route from an outer Recover. One
// around the mux logs it, and the outer one has nothing left to log.
func TestSecondRecoverLogsTheRoute(t *testing.T) {
	var logs logbook
	rs := &apierror.Responder{Logger: logs.logger()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /pets/{petId}", fragile)
	inner := rs.Recover(rs.Mux(mux))
	outer := rs.Recover(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), t, "principal")))
	}))
	outer.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/pets/17", nil))
	lines := logs.lines(t)
	if len(lines) != 1 || lines[0]["route"] != "GET /pets/{petId}" {
		t.Errorf("logged %v, want one line with the route", lines)
	}
}

func TestRecoverAfterTheResponseHasBegun(t *testing.T) {
	var rs apierror.Responder
	for _, tt := range []struct {
		name  string
		begin func(w http.ResponseWriter, r *http.Request)
	}{
		{"status", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusOK) }},
		{"body", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("[1,")) }},
		{"no octets", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(nil) }},
		{"copy", func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, strings.NewReader("[1,")) }},
		{"controlled flush", func(w http.ResponseWriter, r *http.Request) { _ = http.NewResponseController(w).Flush() }},
		{"an error", func(w http.ResponseWriter, r *http.Request) { rs.Respond(w, r, petNotFound) }},
		{"copy from a source that panics", func(w http.ResponseWriter, r *http.Request) {
			src := io.MultiReader(strings.NewReader(strings.Repeat("x", 1<<20)), panicReader{})
			_, _ = io.Copy(w, struct{ io.Reader }{src}) // without WriterTo, so that ReadFrom is used
		}},
	} {
		for _, http2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/http2=%t", tt.name, http2), func(t *testing.T) {
				var logs logbook
				rs := &apierror.Responder{Logger: logs.logger()}
				srv := serve(t, rs.Recover(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					tt.begin(w, r)
					panic("late")
				})), http2)

				r := testcheck.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil))
				res, err := srv.Client().Do(r)
				if err == nil {
					_, err = io.ReadAll(res.Body)
					res.Body.Close()
				}
				if err == nil {
					t.Error("the client takes the broken response for a whole one")
				}
				for _, line := range logs.lines(t) {
					if line["panic"] != "late" || line["aborted"] != true || line["level"] != "ERROR" {
						t.Errorf("log line %v, want the panic, and that the response was aborted", line)
					}
				}
				if logs.String() == "" {
					t.Error("the panic is not in the log")
				}
			})
		}
	}
}

type panicReader struct{}

func (panicReader) Read([]byte) (int, error) { panic("late") }

// Goexit, which t.FailNow calls, is no panic, and an abort is not logged.
func TestRecoverPassesOn(t *testing.T) {
	for name, end := range map[string]func(){"an abort": func() { panic(http.ErrAbortHandler) }, "Goexit": runtime.Goexit} {
		var logs logbook
		var recovered any
		rs := &apierror.Responder{Logger: logs.logger()}
		rec, ended := httptest.NewRecorder(), make(chan struct{})
		go func() {
			defer close(ended)
			defer func() { recovered = recover() }()
			rs.Recover(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { end() })).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", nil))
		}()
		<-ended
		if (recovered == http.ErrAbortHandler) != (name == "an abort") || rec.Body.Len() != 0 || len(rec.Header()) != 0 || logs.String() != "" {
			t.Errorf("%s: recovered %v, wrote %q %v and logged %q, want it unchanged and nothing else", name, recovered, rec.Body, rec.Header(), &logs)
		}
	}
}
