package lease

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/internal/interleave/sched"
)

// What is done under the lock of a table is one step. So the scheduler of package interleave
// need not trace this package: threads take turns where the engine is asked and where it
// answers, and what runs in the background is a thread.
type scheduled struct {
	*rig
	admitted int64
	queue    []func() // of the background
	fails    bool     // the next question is not sent
	ended    int      // threads, apart from the background
}

func (s *scheduled) step(what string, ready func() bool) {
	sched.Step(unsafe.Pointer(s), sched.Write, what, ready)
}

func (s *scheduled) request(p *ratelimit.Plan, cost int64) {
	if d, err := s.Take(ctx, "ann", p, cost); err == nil && d.Allowed() {
		s.admitted += cost
	}
}

func (s *scheduled) work() {
	for {
		s.step("wait for work", func() bool { return len(s.queue) > 0 || s.ended == 2 })
		if len(s.queue) == 0 {
			return
		}
		f := s.queue[0]
		s.queue = s.queue[1:]
		f()
	}
}

// threads are a caller, something else, and the background.
func (s *scheduled) threads(other func(*scheduled)) []func() {
	s.flood(many, 2000)
	s.admitted = 2000
	s.background = func(f func()) { s.queue = append(s.queue, f) }
	s.fake.hook = func(asked call) error {
		if s.fails {
			return ratelimit.ErrUnavailable
		}
		if asked.cost > 0 || asked.terms.More > 0 || asked.terms.Back == nil {
			s.step(fmt.Sprintf("question, answered: %t", asked.answered), nil)
		}
		return nil
	}
	ends := func(f func()) func() { return func() { sched.Call(f); s.ended++ } }
	return []func(){ends(func() { s.request(many, 600); s.request(many, 200) }), ends(func() { other(s) }), s.work}
}

// Under every schedule of a caller, something else, and the background, the engine has counted
// what was admitted when all is closed.
func TestSchedules(t *testing.T) {
	for name, other := range map[string]func(s *scheduled){
		"a request":       func(s *scheduled) { s.request(many, 300) },
		"another plan":    func(s *scheduled) { s.request(more, 1); s.request(many, 20) },
		"Close":           func(s *scheduled) { s.Close() },
		"a sweep":         func(s *scheduled) { s.clock.Advance(2 * time.Second); s.sweep(false); s.request(many, 20) },
		"a ban, an unban": func(s *scheduled) { _ = s.Ban(ctx, "ann", time.Hour, ""); _, _ = s.Unban(ctx, "ann") },
		"no answer": func(s *scheduled) {
			s.fails = true
			s.step("to fail", nil)
			s.fails = false
		},
	} {
		t.Run(name, func(t *testing.T) {
			var s *scheduled
			runs, failed := sched.Explore(sched.Program{
				Start: func() []func() {
					s = &scheduled{rig: newRig(t)}
					return s.threads(other)
				},
				End: func() string {
					s.fake.hook = answers
					for s.background = func(f func()) { f() }; len(s.queue) > 0; s.queue = s.queue[1:] {
						s.queue[0]()
					}
					s.Close()
					lost := name == "no answer" && s.used(many) > s.admitted // what was given back
					if s.used(many) != s.admitted && !lost || s.held() != 0 {
						return fmt.Sprintf("%d are used, and %d were admitted, %+v", s.used(many), s.admitted, s.Stats())
					}
					return ""
				},
			}, sched.Options{Preemptions: 2})
			if failed != nil {
				t.Fatalf("schedule %v: %s", failed.Schedule, failed.Text)
			}
			t.Log(runs, "schedules")
		})
	}
}
