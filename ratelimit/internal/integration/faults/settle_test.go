//go:build unix

package faults_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
)

// settling is what becomes of requests that are reserved at 40 units and settled later,
// when a server is killed and started again with the same file. In each phase a case
// reserves a request, settles it at so many units, or fails to (!): the engine does not
// answer then, and Settle can be called again.
var settling = []struct {
	mode    failover.Mode
	healthy string
	killed  string // the circuit is still closed
	open    string // the circuit is open
	back    string // the server answers, and the circuit is closed
	want    int64  // what Redis has counted in the end
	because string // of this; "": it is the last number
}{
	{failover.FailLocal, "reserve", "60", "", "", 60, ""},
	{failover.FailLocal, "reserve", "", "60", "", 60, ""},
	{failover.FailLocal, "reserve", "", "60 45", "", 45, ""},
	{failover.FailLocal, "reserve 60", "", "", "20", 20, ""},
	{failover.FailLocal, "reserve", "20", "", "20", 20, ""},
	{failover.FailLocal, "reserve", "60", "", "20", 20, ""},
	{failover.FailLocal, "", "reserve", "60", "", 60, ""},
	{failover.FailLocal, "", "reserve", "", "25", 25, ""},
	{failover.FailLocal, "", "", "reserve 60", "25", 25, ""},
	{failover.FailLocal, "", "", "reserve 10", "", 10, ""},
	{failover.FailLocal, "", "", "reserve", "70", 70, ""},
	{failover.FailLocal, "reserve", "", "20", "", 20, ""},
	{failover.FailLocal, "reserve", "60", "45", "", 45, ""},

	{failover.FailClosed, "reserve", "!60", "!60", "60", 60, ""},
	{failover.FailClosed, "reserve", "!20", "!20", "20", 20, ""},
	{failover.FailClosed, "reserve 60", "", "!20", "20", 20, ""},

	{failover.FailOpen, "reserve", "!60", "", "60", 60, ""},
	{failover.FailOpen, "reserve", "!20", "!20", "20", 20, ""},
	{failover.FailOpen, "reserve", "", "!60", "60", 60, ""},
	{failover.FailOpen, "", "", "reserve 60", "", 0, "the request is counted nowhere"},
	{failover.FailOpen, "", "", "reserve", "60 10 60", 0, "the request is counted nowhere"},
	{failover.FailOpen, "", "reserve", "", "60", 0, "the request is counted nowhere"},
}

func TestSettle(t *testing.T) {
	for _, mode := range []failover.Mode{failover.FailLocal, failover.FailClosed, failover.FailOpen} {
		t.Run(mode.String(), func(t *testing.T) {
			r := newRun(t, scenario{stage: killed}, arrangement{mode: mode})
			plan := lasting(1000)
			reserved := make([]*ratelimit.Reservation, len(settling))
			for phase, begin := range []func(){
				func() {},
				func() { r.stage.hurt(r) },
				func() { r.await("the circuit to open", r.opened) },
				func() { r.stage.heal(r); r.await("the recovery", r.guard.recovered) },
			} {
				begin()
				for i, c := range settling {
					if c.mode != mode {
						continue
					}
					steps := [...]string{c.healthy, c.killed, c.open, c.back}[phase]
					for step := range strings.FieldsSeq(steps) {
						if step == "reserve" {
							reserved[i] = r.reserve(subjectOf(i), plan)
						} else {
							r.settle(reserved[i], step)
						}
					}
				}
			}
			r.await("the journal to be merged", func() bool { return r.guard.Stats().Pending == 0 })
			for i, c := range settling {
				if c.mode != mode {
					continue
				}
				d, err := r.engine.Peek(r.ctx, subjectOf(i), plan)
				if err != nil {
					t.Fatal(err)
				}
				if used := d.Limit() - d.Remaining(); used != c.want {
					t.Errorf("%q, killed %q, open %q, back %q: Redis has counted %d, want %d (%s)",
						c.healthy, c.killed, c.open, c.back, used, c.want, c.because)
				}
			}
		})
	}
}

func subjectOf(i int) string { return fmt.Sprint("settled:", i) }

// reserve charges 40 units, as the middleware does with Options.Context.
func (r *run) reserve(subject string, plan *ratelimit.Plan) *ratelimit.Reservation {
	r.t.Helper()
	d, err := r.guard.Take(r.ctx, subject, plan, 40)
	if err != nil || !d.Allowed() {
		r.t.Fatalf("%s is %v: %v", subject, d.Outcome, err)
	}
	charges := []ratelimit.Charge{{Subject: subject, Plan: plan, Cost: 40}}
	return ratelimit.FromContext(ratelimit.Reserve(r.ctx, r.guard, ratelimit.Caller{Subject: subject, Plan: plan},
		charges, []ratelimit.Decision{d}, true))
}

// settle settles a request at so many units, or fails to if the step begins with "!".
func (r *run) settle(reserved *ratelimit.Reservation, step string) {
	r.t.Helper()
	number, fails := strings.CutPrefix(step, "!")
	units, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		r.t.Fatal(err)
	}
	err = reserved.Settle(r.ctx, units)
	if fails && !errors.Is(err, ratelimit.ErrUnavailable) || !fails && err != nil {
		r.t.Errorf("settle %s of %s: %v", step, reserved.Caller().Subject, err)
	}
}

// opened sends a request and reports whether the circuit is open.
func (r *run) opened() bool {
	r.guard.Take(r.ctx, "other", lasting(1), 1)
	return r.guard.Circuit() != failover.CircuitClosed
}
