package adminapi

import (
	"context"
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
