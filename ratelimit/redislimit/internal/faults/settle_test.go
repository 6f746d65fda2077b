//go:build unix

package faults

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// settling is what becomes of requests that are reserved at 40 units and settled later,
// when a server is killed and started again with the same file. In each phase a case
// reserves a request, settles it at so many units, or fails to (!): the engine does not
// answer then, and Settle can be called again.
var settling = []struct {
	local   bool // failover has a local engine
	healthy string
	killed  string // the circuit is still closed
	open    string // the circuit is open
	back    string // the server answers, and the circuit is closed
	want    int64  // what Redis has counted in the end
}{
	{true, "reserve", "60", "", "", 60},
	{true, "reserve", "", "60", "", 60},
	{true, "reserve", "", "60 45", "", 45},
	{true, "reserve 60", "", "", "20", 20},
	{true, "reserve", "20", "", "20", 20},
	{true, "reserve", "60", "", "20", 20},
	{true, "", "reserve", "60", "", 60},
	{true, "", "reserve", "", "25", 25},
	{true, "", "", "reserve 60", "25", 25},
	{true, "", "", "reserve 10", "", 10},
	{true, "", "", "reserve", "70", 70},
	{true, "reserve", "", "20", "", 20},
	{true, "reserve", "60", "45", "", 45},

	{false, "reserve", "!60", "!60", "60", 60},
	{false, "reserve", "!20", "!20", "20", 20},
	{false, "reserve 60", "", "!20", "20", 20},
}

func TestSettle(t *testing.T) {
	for _, local := range []bool{true, false} {
		t.Run(fmt.Sprint("local engine: ", local), func(t *testing.T) {
			r := newRun(t, scenario{stage: killed}, arrangement{failover: true, local: local})
			plan := lasting(1000)
			reserved := make([]*limit.Settlement, len(settling))
			for phase, begin := range []func(){
				func() {},
				func() { r.stage.hurt(r) },
				func() { r.await("the circuit to open", r.opened) },
				func() { r.stage.heal(r); r.await("the recovery", r.guard.recovered) },
			} {
				begin()
				for i, c := range settling {
					if c.local != local {
						continue
					}
					steps := [...]string{c.healthy, c.killed, c.open, c.back}[phase]
					for step := range strings.FieldsSeq(steps) {
						if step == "reserve" {
							reserved[i] = r.reserve(fmt.Sprint(i), plan)
						} else {
							r.settle(reserved[i], step)
						}
					}
				}
			}
			r.await("the journal to be merged", func() bool { return r.guard.Stats().Pending == 0 })
			for i, c := range settling {
				if c.local != local {
					continue
				}
				d, err := r.engine.Peek(r.ctx, subjectOf(i), plan)
				must(t, err)
				if used := d.Limit() - d.Remaining(); used != c.want {
					t.Errorf("%q, killed %q, open %q, back %q: Redis has counted %d, want %d",
						c.healthy, c.killed, c.open, c.back, used, c.want)
				}
			}
		})
	}
}

func subjectOf(i int) string { return fmt.Sprint("settled/", i) }

// reserve charges 40 units, and returns what a handler finds with Options.Settle.
func (r *run) reserve(subject string, plan *ratelimit.Plan) (reserved *limit.Settlement) {
	r.t.Helper()
	limited, err := limit.New(r.guard, func(*http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: subject, Plan: plan}, nil
	}, limit.Options{Name: "settled", Settle: true, Cost: func(*http.Request) int64 { return 40 }})
	must(r.t, err)
	w := httptest.NewRecorder()
	limited(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		reserved = limit.FromContext(request.Context())
	})).ServeHTTP(w, httptest.NewRequestWithContext(r.ctx, "GET", "/", nil))
	if reserved == nil {
		r.t.Fatalf("%s: %d %s", subject, w.Code, w.Body)
	}
	return reserved
}

// settle settles a request at so many units, or fails to if the step begins with "!".
func (r *run) settle(reserved *limit.Settlement, step string) {
	r.t.Helper()
	number, fails := strings.CutPrefix(step, "!")
	units, err := strconv.ParseInt(number, 10, 64)
	must(r.t, err)
	err = reserved.Settle(r.ctx, units)
	if fails && !errors.Is(err, ratelimit.ErrUnavailable) || !fails && err != nil {
		r.t.Errorf("settle %s of %s: %v", step, reserved.Caller().Subject, err)
	}
}

// opened sends a request and reports whether the circuit is open.
func (r *run) opened() bool {
	r.guard.Take(r.ctx, "other", lasting(1), 1)
	return r.guard.Open()
}
