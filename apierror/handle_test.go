package apierror_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/apierror"
)

func TestHandleAfterTheResponseHasBegun(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("http2=%t", http2), func(t *testing.T) {
			var logs logbook
			rs := &apierror.Responder{Logger: logs.logger()}
			srv := serve(t, rs.Recover(rs.Handle(func(w http.ResponseWriter, r *http.Request) error {
				_, _ = io.WriteString(w, `[{"id":1}`)
				w.(http.Flusher).Flush()
				return petNotFound
			})), http2)

			res := do(t, srv, http.MethodGet, "/")
			if res.err == nil {
				t.Errorf("a truncated body looks whole to the client: %q", res.body)
			}
			if res.body != `[{"id":1}` {
				t.Errorf("body %q, want only what the handler wrote", res.body)
			}
			want := []map[string]any{{
				"level": "ERROR", "msg": "request failed after its response had begun; response aborted",
				"method": "GET", "route": "", "error": petNotFound.Error(),
			}}
			if diff := cmp.Diff(want, logs.lines(t)); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHandleWithoutError(t *testing.T) {
	var logs logbook
	rs := &apierror.Responder{Logger: logs.logger()}
	srv := serve(t, rs.Handle(func(w http.ResponseWriter, r *http.Request) error {
		w.WriteHeader(http.StatusCreated)
		_, err := io.WriteString(w, "{}")
		return err
	}))
	res := do(t, srv, http.MethodGet, "/")
	if res.StatusCode != 201 || res.body != "{}" || logs.String() != "" {
		t.Errorf("got %d %q and the log %q, want the handler's own response and no log", res.StatusCode, res.body, &logs)
	}
}
