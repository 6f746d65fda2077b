package failover_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
)

func TestShadow(t *testing.T) {
	ten := ratelimit.MustPlan("ten", ratelimit.Penalty{}, ratelimit.PerMinute(5), ratelimit.PerDay(10))
	hasty := ratelimit.MustPlan("hasty", ratelimit.Penalty{
		Strikes: 1, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour,
	}, ratelimit.PerSecond(1), ratelimit.PerDay(1000))
	for _, test := range []struct {
		name string
		run  func(r *rig)
	}{
		{"used up there is used up here", func(r *rig) {
			r.takeN("a", daily, 1000)
			r.lose()
			if d := r.take("a", daily); d.Outcome != ratelimit.Limited {
				r.Errorf("got %v, want limited", d.Outcome)
			}
		}},
		{"each window has its own", func(r *rig) {
			r.takeN("a", ten, 4)
			time.Sleep(time.Minute)
			r.takeN("a", ten, 2)
			r.lose()
			r.take("a", ten)
			r.wantUsed("with one more", r.local, "a", ten, "3/1m0s 7/24h0m0s")
		}},
		{"windows that have ended are over", func(r *rig) {
			r.takeN("a", ten, 5)
			time.Sleep(time.Minute)
			r.lose()
			r.take("a", ten)
			r.wantUsed("with one more", r.local, "a", ten, "1/1m0s 6/24h0m0s")
			r.take("a", ten)
			time.Sleep(24 * time.Hour)
			r.take("a", ten)
			r.wantUsed("a day later", r.local, "a", ten, "1/1m0s 1/24h0m0s")
		}},
		{"less than half is forgotten", func(r *rig) {
			r.takeN("a", daily, 499)
			r.takeN("b", daily, 500)
			r.lose()
			r.take("a", daily)
			r.take("b", daily)
			r.wantUsed("499 of 1000 there", r.local, "a", daily, "1/24h0m0s")
			r.wantUsed("500 of 1000 there", r.local, "b", daily, "501/24h0m0s")
		}},
		{"who was banned there is banned here", func(r *rig) {
			var d ratelimit.Decision
			for d.Outcome != ratelimit.Banned {
				d = r.take("a", hasty)
			}
			r.lose()
			if here := r.take("a", hasty); here.Outcome != ratelimit.Banned || here.BanEnds != d.BanEnds {
				r.Errorf("got %v until %d, want banned until %d", here.Outcome, here.BanEnds, d.BanEnds)
			}
			time.Sleep(2 * time.Hour)
			if here := r.take("a", hasty); !here.Allowed() {
				r.Errorf("after the ban: got %v", here.Outcome)
			}
		}},
		{"a ban that was ended by hand is over", func(r *rig) {
			for r.take("a", hasty).Outcome != ratelimit.Banned {
			}
			if _, err := r.Unban(ctx, "a"); err != nil {
				r.Fatal(err)
			}
			r.lose()
			time.Sleep(time.Second)
			if d := r.take("a", hasty); !d.Allowed() {
				r.Errorf("got %v, want allowed", d.Outcome)
			}
		}},
		{"a subject that was reset is fresh", func(r *rig) {
			r.takeN("a", daily, 1000)
			if err := r.Reset(ctx, "a"); err != nil {
				r.Fatal(err)
			}
			r.lose()
			if d := r.take("a", daily); d.Remaining() != 999 {
				r.Errorf("%d remaining, want 999", d.Remaining())
			}
		}},
		{"a peek sees it", func(r *rig) {
			r.takeN("a", daily, 1000)
			r.lose()
			if d, err := r.Peek(ctx, "a", daily); err != nil || d.Outcome != ratelimit.Limited {
				r.Errorf("got %v, %v, want limited", d.Outcome, err)
			}
		}},
		{"a second outage counts nothing twice", func(r *rig) {
			r.takeN("a", daily, 500)
			r.lose()
			r.takeN("a", daily, 100)
			r.regain()
			r.takeN("a", daily, 50)
			r.lose()
			r.take("a", daily)
			r.wantUsed("500 there, 100 here, 50 there, one here", r.local, "a", daily, "651/24h0m0s")
			r.regain()
			r.wantUsed("and there", r.shared.engine, "a", daily, "651/24h0m0s")
		}},
		{"what was merged is nothing that this process used", func(r *rig) {
			r.takeN("a", daily, 600)
			r.lose()
			r.take("a", daily)
			r.regain()
			r.wantUsed("600 there and one here", r.shared.engine, "a", daily, "601/24h0m0s")
		}},
	} {
		t.Run(test.name, func(t *testing.T) { run(t, failover.FailLocal, failover.Options{}, test.run) })
	}
	t.Run("it can be turned off", func(t *testing.T) {
		run(t, failover.FailLocal, failover.Options{Shadow: -1}, func(r *rig) {
			r.takeN("a", daily, 1000)
			r.lose()
			if d := r.take("a", daily); !d.Allowed() {
				r.Errorf("got %v, want a fresh quota", d.Outcome)
			}
		})
	})
	t.Run("it is bounded", func(t *testing.T) {
		run(t, failover.FailLocal, failover.Options{Shadow: 64}, func(r *rig) {
			const subjects = 1000
			for i := range subjects {
				r.takeN(fmt.Sprint(i), daily, 1000)
			}
			r.lose()
			known := 0
			for i := range subjects {
				if !(r.take(fmt.Sprint(i), daily).Outcome == ratelimit.Allowed) {
					known++
				}
			}
			if known < 50 || known > 64 {
				r.Errorf("%d subjects were remembered, want at most 64, and most of those", known)
			}
		})
	})
}
