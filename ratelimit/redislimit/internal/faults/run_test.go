//go:build unix

package faults

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// A run is one fault that meets one arrangement.
type run struct {
	t           *testing.T
	ctx         context.Context
	scenario    scenario
	arrangement arrangement
	stage       stage
	engine      *redislimit.Limiter // beside the load
	primary     *primary
	guard       *guard // nil without one
	load        *load
	log         book  // of the engine
	hasty       int64 // requests before the fault that Redis may not have counted yet
}

// untilTheEnd returns a context that ends shortly before the tests have no time left: what is
// not done by then hangs.
func untilTheEnd(t *testing.T) context.Context {
	end, limited := t.Deadline()
	if !limited {
		return t.Context()
	}
	ctx, cancel := context.WithDeadline(t.Context(), end.Add(-10*time.Second))
	t.Cleanup(cancel)
	return ctx
}

func newRun(t *testing.T, s scenario, a arrangement) *run {
	t.Helper()
	r := &run{t: t, ctx: untilTheEnd(t), scenario: s, arrangement: a, stage: s.stage(t)}
	r.load = &load{subjects: newSubjects(), opened: func() uint64 { return 0 }}
	r.engine = newEngine(t, r.stage.beside, redislimit.Options{})
	r.primary = &primary{load: r.load, Limiter: newEngine(t, r.stage.client, redislimit.Options{Logger: slog.New(slog.NewTextHandler(&r.log, nil))})}
	r.guard = newGuard(t, a, r.primary)
	r.await("the first answer", func() bool { // the client connects, and the server learns the script
		_, err := r.primary.Peek(r.ctx, probe, lasting(1))
		return err == nil
	})
	r.load.take = r.primary.Take
	if r.guard != nil {
		r.load.take = r.guard.Take
		r.load.opened = func() uint64 { return r.guard.Stats().Opened }
	}
	return r
}

func newEngine(t *testing.T, client redis.UniversalClient, opts redislimit.Options) *redislimit.Limiter {
	t.Helper()
	l, err := redislimit.New(client, opts)
	must(t, err)
	return l
}

// play goes through the phases, and holds what the callers saw against the
// promises.
func (r *run) play() outcome {
	r.load.start(r.ctx)
	defer r.load.stop()
	r.await("the healthy phase", func() bool { return r.load.ended[healthy].Load() >= healthyRequests })
	r.begin(fault)
	r.stage.hurt(r)
	if r.scenario.lasts {
		r.awaitFault()
		r.begin(recovery)
		r.stage.heal(r)
	} else {
		r.begin(recovery)
	}
	return r.recover()
}

// recover waits until the primary decides again and the limits are used up, and
// ends the load.
func (r *run) recover() outcome {
	r.await("the recovery", func() bool { return r.load.decided() && (r.guard == nil || r.guard.recovered()) })
	n := r.load.answers[recovery].Load()
	r.await("as many requests as use up the limits", func() bool { return r.load.answers[recovery].Load()-n >= recoveryRequests })
	// On a busy machine fewer of them are decided by Redis.
	for _, s := range r.load.subjects[:len(limited)] {
		r.await("a denial of "+s.name, func() bool { return s.denied.Load() > 0 })
	}
	r.load.stop()
	r.await("the last requests", r.load.finished())
	// On a busy machine the last requests may have exceeded the budget.
	r.await("the journal to be merged", func() bool { return r.guard == nil || r.guard.Stats().Pending == 0 })
	return r.hold()
}

// awaitFault waits until the fault was felt. While the circuit is open the primary is
// called for no request.
func (r *run) awaitFault() {
	if r.guard == nil || r.stage.felt != nil {
		r.await("the fault to be felt", r.felt)
		return
	}
	r.await("the circuit to open", func() bool { return r.guard.Open() })
	r.await("the requests that began before", r.load.turned())
	calls := r.primary.calls.Load()
	r.await("the fault to be felt", r.felt)
	if n := r.primary.calls.Load() - calls; n != 0 {
		r.t.Errorf("while the circuit was open Redis was asked for %d requests, want none", n)
	}
}

// felt reports whether as many requests have met the fault as are wanted, and a
// probe of the primary too, if it lasts.
func (r *run) felt() bool {
	if r.stage.felt != nil {
		return r.load.ended[fault].Load() >= faultRequests && r.stage.felt(r)
	}
	if r.guard == nil {
		return r.load.ended[fault].Load() >= waitingRequests
	}
	return r.load.ended[fault].Load() >= faultRequests && (!r.scenario.lasts || r.guard.refused.Load() > 0)
}

func (r *run) begin(phase int32) {
	if phase == fault {
		for _, s := range r.load.subjects {
			s.before = s.admitted.Load()
		}
		// On a busy machine requests exceed the budget without a fault.
		if r.guard != nil && r.guard.Stats().Fallbacks > 0 {
			r.hasty = int64(r.guard.Stats().Fallbacks) + callers
		}
	}
	r.load.phase.Store(phase)
}

// forget notes what Redis has forgotten of what was admitted until now: all but
// what it still knows.
func (r *run) forget(known func(*subject) int64) {
	for _, s := range r.load.subjects {
		s.lost = max(s.admitted.Load()-known(s), 0)
	}
}

// used returns what Redis has counted. A replica that takes over ends its connections.
func (r *run) used(s *subject) (n int64) {
	r.t.Helper()
	r.await("what Redis has counted", func() bool {
		d, err := r.engine.Peek(r.ctx, s.name, lasting(fixedwindow.MaxUnits))
		if err != nil {
			r.t.Log(err)
			return false
		}
		n = fixedwindow.MaxUnits - d.States[0].Remaining
		return true
	})
	return n
}

// await waits for what will come.
func (r *run) await(what string, come func() bool) {
	r.t.Helper()
	await(r.ctx, r.t, what, come)
}

func await(ctx context.Context, t *testing.T, what string, come func() bool) {
	t.Helper()
	for !come() {
		if ctx.Err() != nil {
			t.Fatalf("still waiting for %s when the tests end", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// version returns that of the server.
func (r *run) version() string {
	info, err := r.stage.beside.InfoMap(r.ctx, "server").Result()
	must(r.t, err)
	return info["Server"]["redis_version"]
}
