package limit

import (
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A flood of denials of one kind costs no memory: their error is made once.
func TestDenialsOfOneKindAreMadeOnce(t *testing.T) {
	d := ratelimit.Decision{
		Outcome: ratelimit.Limited, Cost: 1, StrikesLeft: 3,
		Plan: ratelimit.MustPlan("p", ratelimit.DefaultPenalty(), ratelimit.PerMinute(1), ratelimit.PerDay(100)),
	}
	if first := denial(0, &d).Message; !strings.Contains(first, "1 request per minute") { // nothing is kept of a plan that is used once
		t.Errorf("the first denial is %q, want one that counts requests of the minute", first)
	}
	kept := denial(0, &d)
	if n := testing.AllocsPerRun(100, func() {
		if denial(0, &d) != kept {
			t.Error("the same denial is another error")
		}
	}); n > 0 {
		t.Errorf("a denial allocates %v times, want 0", n)
	}
	d.StrikesLeft = 2
	if denial(0, &d) == kept {
		t.Error("another number of strikes left is the same error")
	}
	d.StrikesLeft, d.Applicable = 3, 1 // both quotas still refuse
	if got := denial(0, &d).Message; !strings.Contains(got, "100 requests per day") {
		t.Errorf("a denial by the day is %q", got)
	}
}
