package plans

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// The plans on the page.
func Example() {
	mild := ratelimit.DefaultPenalty()
	mild.Max = time.Hour

	free := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerDay(10_000))
	pro := ratelimit.MustPlan("pro", mild, ratelimit.PerMinute(600).Smooth(100), ratelimit.PerMonth(1_000_000).From(17))
	guests := ratelimit.MustPlan("guests", ratelimit.Penalty{}, ratelimit.PerMinute(60))         // by network
	everybody := ratelimit.MustPlan("everybody", ratelimit.Penalty{}, ratelimit.PerSecond(2000)) // in Caller.Also
	unpaid := ratelimit.SuspendedPlan("unpaid")
	staff := ratelimit.UnlimitedPlan("staff")

	for _, p := range []*ratelimit.Plan{free, pro, guests, everybody, unpaid, staff} {
		fmt.Println(p.Name(), p.Quotas())
	}
	// Output:
	// free [60/minute 10000/day]
	// pro [600/minute smooth 100 1000000/month from 17]
	// guests [60/minute]
	// everybody [2000/second]
	// unpaid []
	// staff []
}

// The code on the page is that of the example.
func TestCode(t *testing.T) {
	source, err := os.ReadFile("plans_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(page(t), -1)
	if len(blocks) != 1 {
		t.Fatalf("docs/PLANS.md has %d blocks of Go, want 1", len(blocks))
	}
	indented := regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(blocks[0][1], "\t$1")
	if !strings.Contains(string(source), indented) {
		t.Errorf("the example does not have these lines of docs/PLANS.md:\n%s", blocks[0][1])
	}
}
