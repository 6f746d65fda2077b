package admin

import (
	"net/http"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/adminapi"
)

// state also answers while the server starts.
func (a *admin) state(w http.ResponseWriter, r *http.Request) error {
	health := a.runChecks(r.Context(), true)
	answer := adminapi.State{
		Build: a.Build, Started: a.started.UTC(), Uptime: int64(a.Now().Sub(a.started) / time.Second),
		Ready: health.Ready, Checks: health.Checks,
	}
	if s := a.Server(); s != nil {
		report := s.Report()
		answer.Report = &report
	}
	return writeJSON(w, http.StatusOK, answer)
}
