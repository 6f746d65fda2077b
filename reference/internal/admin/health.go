package admin

import (
	"context"
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

// A readiness is the result of all checks: "ok", or what is wrong, by the name of the check.
type readiness struct {
	Ready  bool              `json:"ready"`
	Checks map[string]string `json:"checks"`
}

// runChecks runs all checks. Without details, a check that fails is only "failing".
func (a *admin) runChecks(ctx context.Context, details bool) readiness {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	result := readiness{true, map[string]string{}}
	for _, c := range a.Checks {
		result.Checks[c.Name] = "ok"
		if err := c.Run(ctx); err != nil {
			result.Checks[c.Name] = "failing"
			if details {
				result.Checks[c.Name] = err.Error()
			}
			result.Ready = result.Ready && c.Advisory
		}
	}
	return result
}

func (a *admin) readyz(w http.ResponseWriter, r *http.Request) error {
	result := a.runChecks(r.Context(), a.trusted(r))
	status := http.StatusOK
	if !result.Ready {
		status = http.StatusServiceUnavailable
	}
	return writeJSON(w, status, result)
}
