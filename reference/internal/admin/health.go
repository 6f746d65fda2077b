package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/build"
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

// runChecks runs all checks. Without details, a check that fails is only "failing".
func (a *admin) runChecks(ctx context.Context, details bool) Readiness {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	result := Readiness{true, map[string]string{}}
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

// state also answers while the server starts.
func (a *admin) state(w http.ResponseWriter, r *http.Request) error {
	answer := State{
		Build: a.Build, Started: a.started.UTC(), Uptime: int64(a.Now().Sub(a.started) / time.Second),
		Readiness: a.runChecks(r.Context(), true),
	}
	if s := a.Server(); s != nil {
		report := s.Report()
		answer.Report = &report
	}
	return writeJSON(w, http.StatusOK, answer)
}

// A State is what GET /state answers.
type State struct {
	Build   build.Info `json:"build"` // as petstore version --json prints it
	Started time.Time  `json:"started"`
	Uptime  int64      `json:"uptime"` // seconds since Started

	Readiness // as in /readyz, with the texts of errors
	*Report   // nil while the server starts
}

// A Report has the numbers of a server that serves.
type Report struct {
	Engine      Engine                 `json:"engine"`
	Connections map[string]Connections `json:"connections"` // by listener: api, admin
	Settings    Settings               `json:"settings"`
}

// An Engine says where usage is counted, and how full the engine is.
type Engine struct {
	// Kind is "memory" if usage is counted in this process, or "redis".
	Kind string `json:"kind"`

	// Subjects and the following are of the engine in this process. With Redis, it
	// decides only while Redis does not answer.
	Subjects int64  `json:"subjects"` // places in use
	Capacity int64  `json:"capacity"` // places
	Evicted  uint64 `json:"evicted"`  // subjects replaced before their windows were over
	Refused  uint64 `json:"refused"`  // subjects and strikes that found no place

	Redis *Redis `json:"redis,omitempty"` // nil without Redis
}

// A Redis says whether Redis decides, and what happened while it did not.
type Redis struct {
	Mode      string `json:"mode"`      // what happens while Redis does not decide: local, open, closed
	Circuit   string `json:"circuit"`   // closed: Redis decides; open: it does not
	Fallbacks uint64 `json:"fallbacks"` // decisions that Redis did not make
	Failures  uint64 `json:"failures"`  // calls of Redis that failed
	Timeouts  uint64 `json:"timeouts"`  // those of them that were not answered in time
	Opened    uint64 `json:"opened"`    // times that the circuit opened
	Pending   int64  `json:"pending"`   // subjects with usage that is not in Redis yet
	Lost      uint64 `json:"lost"`      // times that such usage found no place
}

// Connections are the connections of one listener.
type Connections struct {
	Open    int   `json:"open"`
	Idle    int   `json:"idle"`    // those of them without a running request
	Refused int64 `json:"refused"` // closed at once because their network has too many
	Evicted int64 `json:"evicted"` // idle ones that were closed to make room
	Waited  int64 `json:"waited"`  // that had to wait for room
}

// Settings say how often the server has read its settings again.
type Settings struct {
	Applied int64      `json:"applied"`
	Refused int64      `json:"refused"`           // because of a mistake
	Last    *time.Time `json:"last,omitempty"`    // of the last reload; nil: none
	Error   string     `json:"error,omitempty"`   // why it was refused; "": it was not
	Restart []string   `json:"restart,omitempty"` // settings that take effect after a restart
}
