package ratelimit_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// The plans on the page docs/PLANS.md.
func Example_plans() {
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
func TestCodeOfPlansPage(t *testing.T) {
	source := testcheck.Must(os.ReadFile("plans_page_test.go"))
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(plansPage(t), -1)
	if len(blocks) != 1 {
		t.Fatalf("docs/PLANS.md has %d blocks of Go, want 1", len(blocks))
	}
	indented := regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(blocks[0][1], "\t$1")
	if !strings.Contains(string(source), indented) {
		t.Errorf("the example does not have these lines of docs/PLANS.md:\n%s", blocks[0][1])
	}
}

// A client returns how long it waits after the decision on its n-th request.
type client func(n int, d *ratelimit.Decision) time.Duration

func every(pause time.Duration) client {
	return func(int, *ratelimit.Decision) time.Duration { return pause }
}

// clients are the rows of the page.
var clients = []struct {
	name string
	new  func() client
}{
	{"a good client: two requests a second, waits for `Retry-After`", func() client {
		return func(_ int, d *ratelimit.Decision) time.Duration { return max(500*time.Millisecond, d.RetryAfter) }
	}},
	{"the same, but doubles its pauses from 1 s to 10 min instead", func() client {
		pause := time.Second
		return func(_ int, d *ratelimit.Decision) time.Duration {
			if d.Allowed() {
				pause = time.Second
				return 500 * time.Millisecond
			}
			defer func() { pause = min(2*pause, 10*time.Minute) }()
			return pause
		}
	}},
	{"no backoff: two requests a second, whatever the answer", func() client { return every(500 * time.Millisecond) }},
	{"a broken cron job: 200 requests in 20 s, every 5 min", func() client {
		return func(n int, _ *ratelimit.Decision) time.Duration {
			if n%200 == 0 {
				return 5*time.Minute - 199*100*time.Millisecond
			}
			return 100 * time.Millisecond
		}
	}},
	{"an attacker: ten requests a second", func() client { return every(100 * time.Millisecond) }},
	{"an office behind one address: 50 people, each one request in 20 s", func() client { return every(400 * time.Millisecond) }},
}

// A day is what a client experiences in one.
type day struct {
	sent, admitted, limited, banned int
	bans                            int
	longest                         time.Duration
}

// live lets a client send requests from midnight to midnight.
func live(t *testing.T, c client, penalty ratelimit.Penalty) (total day) {
	t.Helper()
	plan := ratelimit.MustPlan("free", penalty, ratelimit.PerMinute(60), ratelimit.PerDay(10_000))
	start := time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC)
	clock := ratelimittest.NewClock(start)
	limiter := testcheck.Must(memory.New(memory.Options{Now: clock.Now}))
	for clock.Now().Before(start.Add(24 * time.Hour)) {
		d := testcheck.Must(limiter.Take(t.Context(), "client", plan, 1))
		total.sent++
		switch d.Outcome {
		case ratelimit.Allowed:
			total.admitted++
		case ratelimit.Limited:
			total.limited++
		default:
			total.banned++
		}
		if d.Struck && d.Outcome == ratelimit.Banned {
			total.bans++
			total.longest = max(total.longest, d.RetryAfter)
		}
		clock.Advance(c(total.sent, &d))
	}
	return total
}

// The table on the page is what the clients experience under its plan, with three
// penalties.
func TestClientsOfPlansPage(t *testing.T) {
	race.Skip(t)
	mild := ratelimit.DefaultPenalty()
	mild.Max = time.Hour
	var table strings.Builder
	for _, c := range clients {
		d := live(t, c.new(), ratelimit.DefaultPenalty())
		fmt.Fprintf(&table, "| %s | %d | %d | %d | %d | %d | %s | %d | %d |\n",
			c.name, d.sent, d.admitted, d.limited, d.banned, d.bans, hours(d.longest),
			live(t, c.new(), mild).admitted, live(t, c.new(), ratelimit.Penalty{}).admitted)
	}
	if !strings.Contains(plansPage(t), table.String()) {
		t.Errorf("docs/PLANS.md does not have these rows:\n%s", &table)
	}
}

func hours(d time.Duration) string {
	if d == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f h", d.Hours())
}

func plansPage(t *testing.T) string {
	t.Helper()
	text := testcheck.Must(os.ReadFile("../docs/PLANS.md"))
	return string(text)
}
