package failover

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

var must = testcheck.NoError

// If the windows of a call end while it is made, its answer does not remove another call.
func TestAnswerAfterTheEndOfAWindow(t *testing.T) {
	minute := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerMinute(100))
	day := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerDay(100))
	synctest.Test(t, func(t *testing.T) {
		j := journal{bound: 1024, entries: map[string]*entry{}}
		enter := func(p *ratelimit.Plan, id string) {
			d := engine.Uncounted(p, 0, time.Now())
			must(t, j.enter("a", call{d: d, cost: 3, id: id}))
		}
		enter(minute, "ends")
		enter(day, "stays")
		e := j.entries["a"]
		sent, _ := j.next(e)
		time.Sleep(time.Minute)
		enter(day, "") // which finds that the minute has ended
		j.made(e, sent.id)
		if next, ok := j.next(e); sent.id != "ends" || !ok || next.id != "stays" {
			t.Errorf("after the answer to %q the next call is %q, want stays", sent.id, next.id)
		}
	})
}

// What is known of a hold is forgotten when it is settled.
func TestHoldsAreForgotten(t *testing.T) {
	day := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerDay(100))
	primary, err := memory.New(memory.Options{})
	must(t, err)
	local, err := memory.New(memory.Options{})
	must(t, err)
	l, err := New(primary, Options{Local: local, Budget: time.Minute})
	must(t, err)
	defer l.Close()
	for _, want := range []int{1, 0} {
		d := engine.Uncounted(day, 1, time.Now())
		if want > 0 {
			_, err = l.Hold("id", time.Minute).Take(t.Context(), "a", day, 1)
		} else {
			err = l.Adjust(t.Context(), "a", &d, 1, "id")
		}
		must(t, err)
		known := 0
		l.holds.Range(func(any, any) bool { known++; return true })
		if known != want {
			t.Errorf("%d holds are known, want %d", known, want)
		}
	}
}
