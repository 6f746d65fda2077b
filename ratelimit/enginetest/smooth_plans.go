package enginetest

import (
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// smoothPlans are those of histories about smooth quotas, some beside fixed windows of the
// same length.
var smoothPlans = func() []*ratelimit.Plan {
	p := ratelimit.Penalty{
		Strikes: 2, Grace: 2 * time.Second, Decay: 5 * time.Second,
		Ban: 10 * time.Second, Growth: 3, Max: 2 * time.Minute, Forgive: time.Minute,
	}
	sec := func(limit int64, s int) ratelimit.Quota {
		return ratelimit.Quota{Limit: limit, Window: time.Duration(s) * time.Second}
	}
	return []*ratelimit.Plan{
		ratelimit.MustPlan("smooth", p, sec(7, 10).Smooth(4)),
		ratelimit.MustPlan("both", p, sec(9, 10), sec(11, 10).Smooth(3), sec(40, 60)),
		ratelimit.MustPlan("slower", p, sec(3, 10).Smooth(2), sec(13, 60).Smooth(13)),
		ratelimit.MustPlan("fixed", p, sec(5, 10), sec(30, 60)),
		ratelimit.MustPlan("four", ratelimit.Penalty{}, sec(6, 3).Smooth(3), sec(9, 7).Smooth(9), sec(12, 11).Smooth(4), sec(90, 600).Smooth(9)),
		ratelimit.MustPlan("others", p, sec(6, 4).Smooth(3), sec(9, 8).Smooth(9), sec(6, 4), sec(9, 8)),
		ratelimit.MustPlan("yet others", p, sec(6, 13).Smooth(3), sec(9, 17).Smooth(9), sec(6, 13), sec(9, 17)),
		ratelimit.MustPlan("large", p, sec(ratelimit.MaxLimit, 10_000).Smooth(1<<31), sec(9_999_999, 10).Smooth(9_999_999)),
	}
}()
