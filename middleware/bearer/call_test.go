package bearer_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/bearer"
)

// A call gets the answer of a request, and its observer sees what it sees of a request.
func TestCall(t *testing.T) {
	var log strings.Builder
	var observed []string
	auth := newAuth(t, bearer.Options{
		Errors: &apierror.Responder{Logger: slog.New(slog.NewTextHandler(&log, nil))},
		Observe: func(r *http.Request, o bearer.Outcome, _ error) {
			observed = append(observed, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization")+" "+o.String())
		},
	})
	for name, c := range map[string]struct {
		lines    []string
		status   int
		field    string
		observed string
		logged   bool
	}{
		"valid":       {[]string{"Bearer " + goodToken}, 0, "", "", false},
		"missing":     {nil, 401, "Www-Authenticate", "POST /pets.Pets/Get  missing", false},
		"invalid":     {[]string{"Bearer unknown"}, 401, "Www-Authenticate", "POST /pets.Pets/Get Bearer unknown invalid", false},
		"repeated":    {[]string{"Bearer a", "Bearer b"}, 400, "Www-Authenticate", "POST /pets.Pets/Get Bearer a repeated", false},
		"unavailable": {[]string{"Bearer down"}, 503, "Retry-After", "POST /pets.Pets/Get Bearer down unavailable", true},
	} {
		t.Run(name, func(t *testing.T) {
			log.Reset()
			observed = nil
			ctx := auth.IdentifyCall(t.Context(), "/pets.Pets/Get", c.lines)
			fields, err := auth.RequireCall(ctx, "/pets.Pets/Get")
			switch {
			case c.status == 0 && err != nil:
				t.Errorf("a valid token is refused: %v", err)
			case c.status == 0:
				if u, ok := bearer.FromContext[user](ctx); !ok || u.name != "ann" {
					t.Errorf("principal %v, %v", u, ok)
				}
			case err == nil || err.Status != c.status || len(fields) != 1 || fields.Get(c.field) == "":
				t.Errorf("refused with %v and the fields %v, want %d and %s", err, fields, c.status, c.field)
			}
			if got := strings.Join(observed, ", "); got != c.observed {
				t.Errorf("observed %q, want %q", got, c.observed)
			}
			if logged := strings.Contains(log.String(), "route=/pets.Pets/Get"); logged != c.logged {
				t.Errorf("the log has %q", log.String())
			}
		})
	}
	if fields, err := auth.RequireCall(context.Background(), "/pets.Pets/Get"); err == nil || err.Status != 500 || len(fields) > 0 {
		t.Errorf("without IdentifyCall: %v with the fields %v, want a 500 without any", err, fields)
	}
}
