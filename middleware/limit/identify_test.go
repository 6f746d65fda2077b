package limit_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// If identify fails, the service's own error is the response, in every failure mode.
// Nothing is counted or observed. Shadow mode serves the request.
func TestIdentifyFails(t *testing.T) {
	public := apierror.New(http.StatusForbidden, "no_such_tenant", "There is no such tenant.")
	private := errors.New("dial tcp 192.0.2.7:5432")
	for _, tt := range []struct {
		name   string
		err    error
		opts   limit.Options
		status int
		code   string
	}{
		{"a public error", public, limit.Options{}, 403, "no_such_tenant"},
		{"a wrapped public error", public.Wrap(private), limit.Options{}, 403, "no_such_tenant"},
		{"a private error", private, limit.Options{}, 500, "internal"},
		{"a private error, fail open", private, limit.Options{FailOpen: true}, 500, "internal"},
		{"a public error in shadow mode", public, limit.Options{Shadow: true}, 200, ""},
		{"a private error in shadow mode", private, limit.Options{Shadow: true}, 200, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			tt.opts.Errors = &apierror.Responder{Logger: slog.New(slog.NewTextHandler(&log, nil))}
			tt.opts.Observe = func(*http.Request, ratelimit.Caller, ratelimit.Decision, error) { t.Error("Observe was called") }
			// A caller beside an error is not admitted.
			mw, err := limit.New(broken{errors.New("asked")}, func(*http.Request) (ratelimit.Caller, error) {
				return ratelimit.Caller{Subject: "a", Plan: ratelimit.UnlimitedPlan("")}, tt.err
			}, tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			w := get(mw(http.HandlerFunc(ok)))
			expect(t, w, tt.status, tt.code, "")
			if fields := rateFields(w.Header()); fields != nil {
				t.Errorf("the response has %q, though nothing was decided", fields)
			}
			if strings.Contains(w.Body.String(), "192.0.2.7") {
				t.Errorf("the response shows a private error: %s", w.Body)
			}
			if w.Code == 500 && !strings.Contains(log.String(), "limit: identify: dial tcp") {
				t.Errorf("the log has %q, want the error of identify", &log)
			}
		})
	}
}
