package ululelimit

import (
	"testing"
	"time"

	"github.com/ulule/limiter/v3"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

var must = testcheck.NoError

func TestPlansAreBounded(t *testing.T) {
	var p plans
	must(t, p.init("", ratelimit.Penalty{}))
	for limit := range int64(3*maxPlans + 7) {
		rate := limiter.Rate{Limit: limit, Period: time.Minute}
		plan, err := p.of(rate)
		must(t, err)
		if got := engine.Of(plan.Plan).Quota(0).Limit; got != limit+1 {
			t.Fatalf("the plan of limit %d has %d, want one more", limit, got)
		}
		if again, _ := p.of(rate); again != plan {
			t.Fatalf("the plan of limit %d was not kept", limit)
		}
		if kept := len(*p.kept.Load()); kept > maxPlans {
			t.Fatalf("%d plans are kept, want at most %d", kept, maxPlans)
		}
	}
}

func TestPlansAreNamedForTheRate(t *testing.T) {
	var p plans
	must(t, p.init("", ratelimit.DefaultPenalty()))
	plan, err := p.of(limiter.Rate{Formatted: "60-M", Limit: 60, Period: time.Minute})
	must(t, err)
	if plan.Name() != "60/minute" || plan.Penalty() != ratelimit.DefaultPenalty() {
		t.Errorf("the plan of 60-M is %q with the penalty %+v, want 60/minute with the store's", plan.Name(), plan.Penalty())
	}
}
