package failover_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
)

func TestRefund(t *testing.T) {
	refund := func(r *rig, d ratelimit.Decision) {
		r.Helper()
		if err := r.Refund(ctx, "a", &d); err != nil {
			r.Fatal(err)
		}
	}
	run(t, failover.FailLocal, failover.Options{}, func(r *rig) {
		there := r.takeN("a", daily, 10)
		refund(r, there)
		r.wantUsed("decided and refunded there", r.shared.engine, "a", daily, "0/24h0m0s")
		r.lose()
		r.takeN("a", daily, 7)
		here := r.takeN("a", daily, 20)
		refund(r, here)
		r.wantUsed("decided and refunded here", r.local, "a", daily, "7/24h0m0s")
		after := r.takeN("a", daily, 30)
		r.regain()
		r.wantUsed("merged", r.shared.engine, "a", daily, "37/24h0m0s")
		refund(r, after)
		r.wantUsed("decided here, merged, then refunded", r.shared.engine, "a", daily, "7/24h0m0s")
		limited := ratelimit.Decision{Outcome: ratelimit.Limited, Plan: daily, Cost: 5, Time: time.Now().UnixNano()}
		refund(r, limited)
		r.wantUsed("a denial gives nothing back", r.shared.engine, "a", daily, "7/24h0m0s")
	})
	run(t, failover.FailLocal, failover.Options{}, func(r *rig) {
		r.shared.set(down)
		d := r.takeN("a", daily, 10)
		r.shared.set(nil)
		refund(r, d)
		r.regain()
		r.wantUsed("refunded before it was merged", r.shared.engine, "a", daily, "0/24h0m0s")
		r.wantUsed("refunded before it was merged", r.local, "a", daily, "0/24h0m0s")
	})
	run(t, failover.FailOpen, failover.Options{}, func(r *rig) {
		r.takeN("a", daily, 10)
		r.shared.set(down)
		d := r.take("a", daily)
		r.shared.set(nil)
		refund(r, d)
		r.wantUsed("a request that was never counted is not given back", r.shared.engine, "a", daily, "10/24h0m0s")
	})
	run(t, failover.FailOpen, failover.Options{}, func(r *rig) {
		smooth := ratelimit.MustPlan("smooth", ratelimit.Penalty{}, ratelimit.PerMinute(60).Smooth(10), ratelimit.PerDay(1000))
		r.takeN("a", smooth, 10)
		r.shared.set(down)
		d := r.take("a", smooth)
		r.shared.set(nil)
		refund(r, d)
		r.wantUsed("nor under a plan with a smooth quota", r.shared.engine, "a", daily, "10/24h0m0s")
	})
}

// A refund that the journal does not hold as a whole is of usage that the primary has
// counted.
func TestRefundOfMoreThanTheJournalHolds(t *testing.T) {
	run(t, failover.FailLocal, failover.Options{}, func(r *rig) {
		there := r.takeN("a", daily, 5)
		r.shared.set(down)
		r.take("a", daily)
		r.shared.set(nil)
		if err := r.Refund(ctx, "a", &there); err != nil {
			r.Fatal(err)
		}
		r.regain()
		r.wantUsed("one of six is left", r.shared.engine, "a", daily, "1/24h0m0s")
	})
}

// A refund of usage that is being charged waits for the charge, so that it finds what
// it gives back.
func TestRefundDuringACharge(t *testing.T) {
	for _, test := range []struct {
		name  string
		after time.Duration // from the request to the refund
	}{{"the charge is under way", 110 * time.Millisecond}, {"the charge failed", 5 * time.Second}} {
		t.Run(test.name, func(t *testing.T) {
			pick(t, failover.Options{}, func(r *rig, p *picky) {
				p.charge = func(ctx context.Context, _ string) error { return slow(30 * time.Millisecond)(ctx) }
				r.shared.set(down)
				d := r.takeN("a", daily, 5)
				if test.after < time.Second {
					r.shared.set(nil)
				}
				time.Sleep(test.after)
				synctest.Wait()
				r.shared.set(nil)
				if err := r.Refund(ctx, "a", &d); err != nil {
					r.Fatal(err)
				}
				r.regain()
				r.wantUsed("refunded", r.shared.engine, "a", daily, "0/24h0m0s")
			})
		})
	}
}

// While the primary refuses the usage of a subject, the local engine decides about it,
// and gives back.
func TestRefundOfASubjectThatWaits(t *testing.T) {
	pick(t, failover.Options{}, func(r *rig, p *picky) {
		r.shared.set(down)
		d := r.takeN("bad", daily, 5)
		r.shared.set(nil)
		time.Sleep(time.Second)
		if err := r.Refund(ctx, "bad", &d); err != nil {
			r.Fatal(err)
		}
		r.wantUsed("given back by the engine that decides", r.local, "bad", daily, "0/24h0m0s")
	})
}
