package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// A Check is one check of /readyz.
type Check struct {
	Name string
	Run  func(ctx context.Context) error // nil: ok
	// Advisory checks are reported but do not make the server unready: another
	// replica would fail them too, or the server works without what they check.
	Advisory bool
}

// checkTimeout is how long all checks may take together.
const checkTimeout = 3 * time.Second

func healthy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Write([]byte("ok\n"))
}

// A Readiness is what GET /readyz answers.
type Readiness struct {
	Ready  bool              `json:"ready"`
	Checks map[string]string `json:"checks"` // "ok", or what is wrong; without the token only "failing"
}

func (a *admin) readyz(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
	defer cancel()
	result, status := Readiness{true, map[string]string{}}, http.StatusOK
	for _, c := range a.Checks {
		err := c.Run(ctx)
		switch {
		case err == nil:
			result.Checks[c.Name] = "ok"
		case entryOf(r.Context()).trusted:
			result.Checks[c.Name] = err.Error()
		default:
			result.Checks[c.Name] = "failing"
		}
		if err != nil && !c.Advisory {
			result.Ready, status = false, http.StatusServiceUnavailable
		}
	}
	return writeJSON(w, status, result)
}

// writeJSON answers with JSON, which no cache may store.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, err = w.Write(append(body, '\n'))
	return err
}
