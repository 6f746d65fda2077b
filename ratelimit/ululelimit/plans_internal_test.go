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
		plan := testcheck.Must(p.of(rate))
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
