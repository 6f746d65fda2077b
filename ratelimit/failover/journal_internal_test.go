package failover

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

var must = testcheck.NoError

// If the windows of a call end while it is made, its answer does not remove another call.
func TestAnswerAfterTheEndOfAWindow(t *testing.T) {
	minute := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerMinute(100))
	day := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerDay(100))
	synctest.Test(t, func(t *testing.T) {
		j := journal{bound: 1024}
		enter := func(p *ratelimit.Plan, id string) {
			d := engine.Uncounted(p, 0, time.Now())
			must(t, j.enter("a", &d, 3, id))
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
