package failover_test

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
)

// A client that uses all it can has used its burst before an outage. It gets what comes
// back meanwhile, and no second burst: neither during the outage nor after it, however
// often the primary goes and returns.
func TestOutageGrantsNoSecondBurst(t *testing.T) {
	smooth := ratelimit.MustPlan("smooth", ratelimit.Penalty{}, ratelimit.PerMinute(60).Smooth(60))
	for _, together := range []bool{false, true} {
		run(t, withLocal, failover.Options{}, func(r *rig) {
			start, admitted := time.Now(), int64(0)
			use := func() {
				for {
					var d ratelimit.Decision
					if together {
						decisions := make([]ratelimit.Decision, 2)
						must(r, r.TakeAll(ctx, []ratelimit.Charge{{Subject: "a", Plan: smooth, Cost: 1}, {Subject: "b", Plan: daily, Cost: 1}}, decisions))
						d = decisions[0]
					} else {
						d = r.take("a", smooth)
					}
					if !d.Allowed() {
						return
					}
					admitted++
				}
			}
			for outage := range 4 {
				use()
				r.lose()
				for range 40 {
					use()
					time.Sleep(700 * time.Millisecond)
				}
				r.regain()
				use()
				if most := 60 + int64(time.Since(start)/time.Second); admitted > most {
					r.Fatalf("in groups %v: %d units were admitted after %d outages, want at most %d", together, admitted, outage+1, most)
				}
			}
		})
	}
}

// What is owed before an outage comes back before what is used during it, also if the
// client stops long before the primary returns. What is refunded is not owed.
func TestOwedAfterAnOutage(t *testing.T) {
	smooth := ratelimit.MustPlan("smooth", ratelimit.Penalty{}, ratelimit.PerMinute(60).Smooth(60))
	run(t, withLocal, failover.Options{}, func(r *rig) {
		start := time.Now()
		r.takeN("a", smooth, 60)
		r.lose()
		for range 31 {
			time.Sleep(time.Second)
			d := r.take("a", smooth)
			if !d.Allowed() {
				r.Fatalf("a unit that has come back is %v", d.Outcome)
			}
			if time.Since(start) > 30*time.Second {
				r.adjust("a", &d, 0)
			}
		}
		time.Sleep(40 * time.Second)
		r.regain()
		used := 60 + 30 - int64(time.Since(start)/time.Second)
		d, err := r.shared.engine.Peek(ctx, "a", smooth)
		if got := 60 - d.Remaining(); err != nil || got < used-1 || got > used+1 {
			r.Errorf("after the outage %d units are used, %v, want %d", got, err, used)
		}
	})
}

// What a client uses at once in an outage is owed, less what came back.
func TestBurstInAnOutage(t *testing.T) {
	smooth := ratelimit.MustPlan("smooth", ratelimit.Penalty{}, ratelimit.PerMinute(60).Smooth(60))
	run(t, withLocal, failover.Options{}, func(r *rig) {
		r.takeN("a", smooth, 40) // so that the local engine knows of it
		start := time.Now()
		r.lose()
		r.takeN("a", smooth, 5)
		time.Sleep(10 * time.Second)
		d := r.takeN("a", smooth, 5)
		r.adjust("a", &d, 15)
		r.regain()
		want := 40 + 5 + 15 - int64(time.Since(start)/time.Second)
		if d, err := r.shared.engine.Peek(ctx, "a", smooth); err != nil || 60-d.Remaining() != want {
			r.Errorf("after the outage %d units are used, %v, want %d", 60-d.Remaining(), err, want)
		}
	})
}
