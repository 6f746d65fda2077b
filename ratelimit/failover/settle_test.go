package failover_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/failover"
)

// A unit of the smooth quota comes back in a day, which no test here lasts.
var monthly = ratelimit.MustPlan("monthly", ratelimit.Penalty{}, ratelimit.PerMonth(1000).From(17),
	ratelimit.Quota{Limit: 366, Window: fixedwindow.MaxLength}.Smooth(366))

// A request that is settled costs what was said last, at the primary too, wherever it was
// charged and wherever it was settled. The numbers are arguments of Settle.
func TestSettleInAnOutage(t *testing.T) {
	for steps, want := range map[string]int{
		"reserve lose 60 regain":    60,
		"reserve lose 60 45 regain": 45,
		"reserve 60 lose regain 20": 20,
		"lose reserve 60 25 regain": 25,
		"lose reserve regain 70":    70,
		"lose reserve regain 10":    10,
		"lose reserve 60 regain 10": 10,
		"reserve lose 60 10 regain": 10,
		"reserve lose 10 regain":    10,
		"reserve lose 10 regain 30": 30,
	} {
		t.Run(steps, func(t *testing.T) {
			run(t, withLocal, failover.Options{}, func(r *rig) {
				var reserved *limit.Reservation
				for step := range strings.FieldsSeq(steps) {
					switch step {
					case "lose":
						r.lose()
					case "regain":
						r.regain()
					case "reserve":
						d := r.takeN("a", monthly, 40)
						inner, _ := limit.Reserve(ctx, r, ratelimit.Caller{Subject: "a", Plan: monthly},
							[]ratelimit.Charge{{Subject: "a", Plan: monthly, Cost: 40}}, []ratelimit.Decision{d}, true)
						reserved = limit.FromContext(inner)
					default:
						units, _ := strconv.ParseInt(step, 10, 64)
						if err := reserved.Settle(ctx, units); err != nil {
							r.Errorf("Settle(%d): %v", units, err)
						}
					}
				}
				r.wantUsed("at the primary", r.shared.engine, "a", monthly,
					fmt.Sprintf("%d/%v %d/%v", want, engine.Of(monthly).Quota(0).Window, want, engine.Of(monthly).Quota(1).Window))
			})
		})
	}
}
