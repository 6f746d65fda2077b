package failover

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// What an entry forgets, the primary is not told: no order stays, and none comes
// in its place.
func TestForgottenOrdersLeaveNothing(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(10))
	for name, order := range map[string]func(*entry){
		"reset": (*entry).orderReset,
		"unban": (*entry).orderUnban,
		"ban":   func(e *entry) { e.orderBan(time.Now().Add(time.Hour)) },
	} {
		e := newEntry("a")
		order(e)
		e.add(plan, 3, time.Now().UnixNano())
		if e.forget(); !e.empty() || e.ordersBan() {
			t.Errorf("after a %s and 3 units were forgotten: %+v, want nothing", name, e)
		}
		if name == "reset" {
			continue
		}
		order(e)
		e.add(plan, 3, time.Now().UnixNano())
		if e.forgetBan(); e.ordersBan() || len(e.usage) != 1 {
			t.Errorf("after a %s was forgotten: %+v, want the usage alone", name, e)
		}
	}
}
