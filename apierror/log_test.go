package apierror_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/testcheck"
)

func TestLog(t *testing.T) {
	cause := errors.New("dial tcp 10.0.0.7:5432: connection refused")
	line := func(level string, status float64, code, err string) []map[string]any {
		return []map[string]any{{
			"level": level, "msg": "request failed", "request_id": "req-1", "method": "GET", "route": "GET /v1/pets/{petId}",
			"status": status, "code": code, "error": err,
		}}
	}
	for _, tt := range []struct {
		name string
		err  error
		want []map[string]any
	}{
		{"no public text", cause, line("ERROR", 500, "internal", cause.Error())},
		{"public 503 with a cause", apierror.New(503, "unavailable", "Try again later.").Wrap(cause),
			line("ERROR", 503, "unavailable", "503 unavailable: Try again later: "+cause.Error())},
		{"public 404 with a cause", petNotFound.Wrap(cause),
			line("INFO", 404, "pet_not_found", "404 pet_not_found: There is no pet with this identifier: "+cause.Error())},
		{"public 404 in a private context", fmt.Errorf("shard 3: %w", petNotFound),
			line("INFO", 404, "pet_not_found", "shard 3: 404 pet_not_found: There is no pet with this identifier.")},
		{"public 404", petNotFound, nil},
		{"cannot be sent", apierror.New(302, "moved", "Elsewhere."), line("ERROR", 500, "internal",
			`apierror: an Error must have a status from 400 to 599 and a code, got 302 and "moved": 302 moved: Elsewhere.`)},
		{"cancelled by the service, not by its client", context.Canceled, line("ERROR", 500, "internal", "context canceled")},
		{"no error, which is a mistake", nil, line("ERROR", 500, "internal", "apierror: the error to answer with must not be nil")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var logs logbook
			rs := &apierror.Responder{Logger: logs.logger(), RequestID: func(context.Context) string { return "req-1" }}
			mux := http.NewServeMux()
			mux.HandleFunc("GET /v1/pets/{petId}", func(w http.ResponseWriter, r *http.Request) { rs.Respond(w, r, tt.err) })
			srv := serve(t, rs.Mux(mux))
			do(t, srv, http.MethodGet, "/v1/pets/7?token="+secret, "Authorization", "Bearer "+secret)
			if diff := cmp.Diff(tt.want, logs.lines(t)); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
		})
	}
}

// statusWriter expects a status.
type statusWriter struct {
	http.ResponseWriter
	t    *testing.T
	want int
}

func (w *statusWriter) WriteHeader(status int) {
	if status != w.want {
		w.t.Errorf("the status is %d, want %d", status, w.want)
	}
	w.ResponseWriter.WriteHeader(status)
}

// A request that failed because its client cancelled it has the status 499. What failed for
// another reason is a fault of the service, also if the client has disconnected.
func TestGoneClientIsNoError(t *testing.T) {
	none := func(http.ResponseWriter) {}
	failed := func(level string, status float64, code, err string) map[string]any {
		return map[string]any{"level": level, "msg": "request failed", "method": "GET", "route": "", "status": status, "code": code, "error": err}
	}
	for _, tt := range []struct {
		name   string
		before func(w http.ResponseWriter)
		err    func(gone error) error
		status int
		want   map[string]any
	}{
		{"before the response", none, func(gone error) error { return fmt.Errorf("query: %w", gone) }, 499,
			failed("INFO", 499, "client_closed_request", "query: context canceled")},
		{"in an error with public text", none, func(gone error) error { return apierror.New(503, "unavailable", "Wait.").Wrap(gone) }, 499,
			failed("INFO", 499, "client_closed_request", "503 unavailable: Wait: context canceled")},
		{"in the middle of it", func(w http.ResponseWriter) { _, _ = io.WriteString(w, "[1,") },
			func(gone error) error { return fmt.Errorf("query: %w", gone) }, 200,
			map[string]any{"level": "INFO", "msg": "response abandoned by its client", "method": "GET", "route": "", "error": "query: context canceled"}},
		{"and the service has failed", none, func(error) error { return errors.New("disk full") }, 500,
			failed("ERROR", 500, "internal", "disk full")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var logs logbook
			rs := &apierror.Responder{Logger: logs.logger()}
			arrived, done := make(chan struct{}), make(chan struct{})
			h := rs.Recover(rs.Handle(func(w http.ResponseWriter, r *http.Request) error {
				tt.before(w)
				close(arrived)
				<-r.Context().Done()
				return tt.err(r.Context().Err())
			}))
			srv := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(done)
				h.ServeHTTP(&statusWriter{w, t, tt.status}, r)
			}))

			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-arrived; cancel() }()
			r := testcheck.Must(http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, nil))
			if res, err := srv.Client().Do(r); err == nil {
				res.Body.Close()
				t.Errorf("the cancelled request was answered with %d", res.StatusCode)
			}
			<-done

			if diff := cmp.Diff([]map[string]any{tt.want}, logs.lines(t)); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
		})
	}
}

// Only what the client has cancelled is its own doing: a deadline is that of the service.
func TestFailuresOfTheService(t *testing.T) {
	deadline, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for _, tt := range []struct {
		name  string
		begun bool
		err   error
	}{
		{"a deadline", false, context.DeadlineExceeded},
		{"a deadline that cancels", false, context.Canceled},
		{"a deadline in the middle of the response", true, context.DeadlineExceeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var logs logbook
			defer func() {
				_ = recover() // http.ErrAbortHandler, if the response has begun
				if lines := logs.lines(t); len(lines) != 1 || lines[0]["level"] != "ERROR" {
					t.Errorf("log %v, want one line of level ERROR", lines)
				}
			}()
			rs := &apierror.Responder{Logger: logs.logger()}
			rs.Handle(func(w http.ResponseWriter, _ *http.Request) error {
				if tt.begun {
					_, _ = io.WriteString(w, "[1,")
				}
				return tt.err
			}).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(deadline, http.MethodGet, "/", nil))
		})
	}
}
