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

// readiness answers with the result of each check: "ok", or what is wrong.
func (a *admin) readiness(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
	defer cancel()
	answer := struct {
		Ready  bool              `json:"ready"`
		Checks map[string]string `json:"checks"`
	}{true, map[string]string{}}
	for _, c := range a.Checks {
		answer.Checks[c.Name] = "ok"
		if err := c.Run(ctx); err != nil {
			answer.Checks[c.Name] = "failing"
			if a.trusted(r) {
				answer.Checks[c.Name] = err.Error()
			}
			answer.Ready = answer.Ready && c.Advisory
		}
	}
	status := http.StatusOK
	if !answer.Ready {
		status = http.StatusServiceUnavailable
	}
	return writeJSON(w, status, answer)
}

func writeJSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, err = w.Write(append(body, '\n'))
	return err
}
