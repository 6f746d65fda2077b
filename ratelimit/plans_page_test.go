package ratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
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

// The code on the page is in this file, or in the example of a soft quota, whose code is in a function.
func TestCodeOfPlansPage(t *testing.T) {
	source := string(testcheck.Must(os.ReadFile("plans_page_test.go"))) + string(testcheck.Must(os.ReadFile("example_soft_test.go")))
	source = strings.ReplaceAll(source, "\t", "")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(plansPage(t), -1)
	if len(blocks) == 0 {
		t.Fatal("docs/PLANS.md has no code")
	}
	for _, block := range blocks {
		if !strings.Contains(source, strings.ReplaceAll(block[1], "\t", "")) {
			t.Errorf("the tests do not have these lines of docs/PLANS.md:\n%s", block[1])
		}
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

// No second, wherever it begins, has more admissions than limit + burst - 1, and some second has
// as many.
func TestAnySecondOfPlansPage(t *testing.T) {
	for quota, want := range map[ratelimit.Quota]int{
		ratelimit.PerSecond(10).Smooth(1): 10, ratelimit.PerSecond(6).Smooth(5): 10, ratelimit.PerSecond(3).Smooth(3): 5,
	} {
		plan := ratelimit.MustPlan("smooth", ratelimit.Penalty{}, quota)
		for name, newLimiter := range map[string]func(func() time.Time) ratelimit.Limiter{
			"memory": func(now func() time.Time) ratelimit.Limiter {
				return testcheck.Must(memory.New(memory.Options{Now: now}))
			},
			"model": func(now func() time.Time) ratelimit.Limiter { return enginetest.NewModel(now) },
		} {
			r, most := rand.New(rand.NewPCG(1, 2)), 0
			for range 50 {
				clock := ratelimittest.NewClock(time.Unix(1_800_000_000, r.Int64N(1e9)))
				limiter := newLimiter(clock.Now)
				var admitted []time.Time
				for range 100 { // a request at once, when it is admitted, or earlier
					d := testcheck.Must(limiter.Take(t.Context(), "client", plan, 1))
					if d.Allowed() {
						admitted = append(admitted, clock.Now())
					}
					clock.Advance(max(d.RetryAfter-time.Duration(r.Int64N(3))*10*time.Millisecond, 0))
				}
				first := 0
				for last := range admitted {
					for admitted[last].Sub(admitted[first]) >= time.Second {
						first++
					}
					most = max(most, last-first+1)
				}
			}
			if most != want {
				t.Errorf("%s admits up to %d requests in a second under %v, want %d", name, most, quota, want)
			}
		}
	}
}

// recipes has the code of the page about a customer.
func recipes(c customer, now time.Time) (*ratelimit.Plan, ratelimit.Quota) {
	// At most 100 requests in all, in the 28 days from the sign-up: no month ends in them.
	day := c.SignUp.UTC().Truncate(24 * time.Hour)
	trial := ratelimit.MustPlan("trial", ratelimit.Penalty{}, ratelimit.PerMonth(100).From(day.Day()))
	if now.Sub(day) >= 28*24*time.Hour {
		trial = ratelimit.SuspendedPlan("trial")
	}

	// A top-up ends with the month: at States[i].Reset of Peek when it was bought.
	month := ratelimit.PerMonth(c.PerMonth).From(c.BillingDay)
	if now.Unix() < c.TopUpEnds {
		month.Limit += c.TopUp
	}
	return trial, month
}

// A customer is a row of a database.
type customer struct {
	SignUp           time.Time
	PerMonth         int64
	BillingDay       int
	TopUp, TopUpEnds int64
}

// Whenever a customer signs up, its trial has as many requests as the page says.
func TestTrialOfPlansPage(t *testing.T) {
	start := time.Date(2027, time.January, 1, 0, 0, 0, 0, time.UTC) // before a leap year
	for signUp := start; signUp.Before(start.AddDate(2, 0, 0)); signUp = signUp.Add(31 * time.Hour) {
		clock := ratelimittest.NewClock(signUp)
		limiter := testcheck.Must(memory.New(memory.Options{Now: clock.Now}))
		admitted := 0
		for clock.Now().Before(signUp.AddDate(0, 2, 0)) {
			trial, _ := recipes(customer{SignUp: signUp, PerMonth: 1}, clock.Now())
			if d := testcheck.Must(limiter.Take(t.Context(), "customer:17", trial, 1)); d.Allowed() {
				admitted++
			}
			clock.Advance(5 * time.Hour)
		}
		if admitted != 100 {
			t.Fatalf("the trial of %v has %d requests, want 100", signUp, admitted)
		}
	}
}

// A top-up counts for the rest of the month, on top of what was used.
func TestTopUpOfPlansPage(t *testing.T) {
	clock := ratelimittest.NewClock(time.Date(2026, time.March, 20, 12, 0, 0, 0, time.UTC))
	limiter := testcheck.Must(memory.New(memory.Options{Now: clock.Now}))
	c := customer{PerMonth: 10, BillingDay: 17}
	plan := func() *ratelimit.Plan {
		_, month := recipes(c, clock.Now())
		return ratelimit.MustPlan("custom", ratelimit.Penalty{}, ratelimit.PerDay(100), month)
	}
	admitted := func() (n int) {
		for testcheck.Must(limiter.Take(t.Context(), "customer:17", plan(), 1)).Outcome == ratelimit.Allowed {
			n++
		}
		return n
	}
	if n := admitted(); n != 10 {
		t.Errorf("%d requests are admitted, want 10", n)
	}
	c.TopUp, c.TopUpEnds = 5, testcheck.Must(limiter.Peek(t.Context(), "customer:17", plan())).States[1].Reset
	if n := admitted(); n != 5 {
		t.Errorf("%d requests are admitted after the top-up, want 5", n)
	}
	for _, next := range []time.Time{time.Date(2026, time.April, 17, 0, 0, 0, 0, time.UTC), time.Date(2026, time.May, 17, 0, 0, 0, 0, time.UTC)} {
		clock.Set(next)
		if n := admitted(); n != 10 {
			t.Errorf("%d requests are admitted in the month of %v, want 10", n, next)
		}
	}
}

// A map by quotas finds the plan of customers with equal ones, also if each has loaded its time
// zone.
func TestQuotasAreKeysOfPlans(t *testing.T) {
	in := func(zone string) [2]ratelimit.Quota {
		return [2]ratelimit.Quota{ratelimit.PerMinute(60).Smooth(5), ratelimit.PerDay(1000).In(testcheck.Must(time.LoadLocation(zone)))}
	}
	plans := map[[2]ratelimit.Quota]string{in("Europe/Berlin"): "in Berlin"}
	if plans[in("Europe/Berlin")] == "" || plans[in("Asia/Tokyo")] != "" {
		t.Error("equal quotas are different keys, or different ones are equal")
	}
}

// Jobs that a user has started count with the requests of the user.
func TestJobsOfPlansPage(t *testing.T) {
	limiter := testcheck.Must(memory.New(noon))
	free := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerDay(5))
	identify := limit.Addresses{}.Identify(func(*http.Request) (string, *ratelimit.Plan, error) { return "ann", free, nil })
	api := testcheck.Must(limit.New(limiter, identify, limit.Options{}))(http.NotFoundHandler())
	jobs := ratelimit.NewWaiter(limiter)
	testcheck.Must(jobs.Wait(t.Context(), limit.UserSubject("ann"), free, 2))
	w := httptest.NewRecorder()
	api.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	ratelimittest.CheckHeaders(t, w.Header(), ratelimittest.Fields{Limit: 5, Remaining: 2})
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
