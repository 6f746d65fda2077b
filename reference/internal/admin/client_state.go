package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/build"
)

// A State is what GET /state answers.
type State struct {
	Build   build.Info `json:"build"` // as petstore version --json prints it
	Started time.Time  `json:"started"`
	Uptime  int64      `json:"uptime"` // seconds since Started
	Ready   bool       `json:"ready"`  // as in /readyz

	Checks map[string]string `json:"checks"` // "ok", or what is wrong, as in /readyz

	*Report // nil while the server starts
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
	Circuit   string `json:"circuit"`   // closed: Redis decides; open, half-open: it does not
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

// State returns the state of the server.
func (c Client) State(ctx context.Context) (answer State, err error) {
	err = c.do(ctx, http.MethodGet, "/state", nil, nil, &answer)
	return answer, err
}

// healthTimeout bounds GET /healthz, which the server answers at once. With the start of the
// command it is less than two seconds, the timeout of some health checks.
const healthTimeout = 1500 * time.Millisecond

// Health returns nil if the process answers GET /healthz. No token is needed.
func (c Client) Health(ctx context.Context) error {
	hangs := fmt.Errorf("no response within %v; the server may hang", healthTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, healthTimeout, hangs)
	defer cancel()
	resp, err := c.send(ctx, http.MethodGet, "/healthz", nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s; check that it is the admin listener", c.Addr, resp.Status)
	}
	return nil
}

// A Readiness is what GET /readyz answers.
type Readiness struct {
	Ready  bool              `json:"ready"`
	Checks map[string]string `json:"checks"` // "ok", or what is wrong; without the token only "failing"
}

// Readiness returns what the server checks before it reports that it is ready. No token
// is needed. The checks take up to three seconds.
func (c Client) Readiness(ctx context.Context) (r Readiness, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	resp, err := c.send(ctx, http.MethodGet, "/readyz", nil, nil)
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return r, fmt.Errorf("cannot read the response of %s: %w", c.Addr, err)
	}
	if err := json.Unmarshal(body, &r); err != nil || r.Checks == nil {
		return r, fmt.Errorf("%s answered %s; check that it is the admin listener", c.Addr, resp.Status)
	}
	return r, nil
}
