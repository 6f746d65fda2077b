package limit_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A combination is a set of options, a caller and what its handler does.
type combination struct {
	context, shadow, cost, failOpen bool
	hold                            bool // with context

	chargeIf string // "", "never", "always", "only 4xx" or "no 5xx"
	caller   string // "plain", "also", "unlimited", "suspended", "limited", "also limited" or "down"
	begins   int    // the status that the handler writes; 0: none
	panics   bool   // afterwards
	settles  int64  // before; -1: not
}

func randomCombination(r *rand.Rand) combination {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	half := func() bool { return r.IntN(2) == 0 }
	return combination{
		context: half(), shadow: half(), cost: half(), failOpen: half(), hold: half(),
		chargeIf: pick("", "never", "always", "only 4xx", "no 5xx"),
		caller:   pick("plain", "also", "also", "unlimited", "suspended", "limited", "also limited", "down"),
		begins:   []int{0, 103, 200, 304, 404, 500, 503}[r.IntN(7)],
		panics:   r.IntN(3) == 0, settles: []int64{-1, -1, 0, 1, 40, 250}[r.IntN(6)],
	}
}

func (c *combination) charges(status int) bool {
	return c.chargeIf == "always" || c.chargeIf == "only 4xx" && status/100 == 4 || c.chargeIf == "no 5xx" && limit.NotServerError(nil, status)
}

// usage returns what the request adds to the usage of a, b and c.
func (c *combination) usage() (used [3]int64) {
	status := c.begins
	if status < 200 { // 103 is not the final one
		status = 0
	}
	switch {
	case c.panics:
		status = 500
	case status == 0:
		status = 200
	}
	cost := int64(1)
	if c.cost {
		cost = 3
	}
	switch {
	case c.caller != "plain" && c.caller != "also":
		return used
	case c.context && c.settles >= 0:
		cost = c.settles
	case c.chargeIf != "" && !c.charges(status):
		return used
	}
	used[0] = cost
	if c.caller == "also" {
		used[1], used[2] = cost, 2 // c has a cost of its own
	}
	return used
}

// served reports whether the handler is called.
func (c *combination) served() bool {
	switch c.caller {
	case "limited", "also limited", "suspended":
		return c.shadow
	case "down":
		return c.shadow || c.failOpen
	}
	return true
}

// status returns that of the response, 0 if the handler panics before it has one.
func (c *combination) status() int {
	switch {
	case !c.served() && c.caller == "down":
		return http.StatusServiceUnavailable
	case c.served() && c.begins >= 200:
		return c.begins
	case c.served() && c.panics:
		return 0
	case c.served():
		return http.StatusOK
	case c.caller == "suspended":
		return http.StatusForbidden
	}
	return http.StatusTooManyRequests
}

func (c *combination) callerOf() ratelimit.Caller {
	caller := ratelimit.Caller{Subject: "a", Plan: tokens}
	switch c.caller {
	case "unlimited":
		caller.Plan = ratelimit.UnlimitedPlan("")
	case "suspended":
		caller.Plan = ratelimit.SuspendedPlan("")
	case "limited":
		caller.Subject = "spent"
	case "also limited":
		caller.Also = []ratelimit.Charge{{Subject: "b", Plan: tokens}, {Subject: "spent", Plan: tokens}}
	case "down":
		caller.Subject = "down"
	case "also":
		caller.Also = []ratelimit.Charge{{Subject: "b", Plan: tokens}, {Subject: "c", Plan: tokens, Cost: 2}}
	}
	return caller
}

// run sends a request with l and returns the status, how often it was observed, and the
// error of Settle.
func (c *combination) run(t *testing.T, l holding) (status, observed int, settled error) {
	opts := limit.Options{Settle: c.context, Shadow: c.shadow, FailOpen: c.failOpen, Headers: everyHeader}
	opts.Observe = func(*http.Request, ratelimit.Caller, ratelimit.Decision, error) { observed++ }
	if c.hold && c.context {
		opts.Hold = time.Second
	}
	if c.cost {
		opts.Cost = func(*http.Request) int64 { return 3 }
	}
	if c.chargeIf != "" {
		opts.ChargeIf = func(_ *http.Request, status int) bool {
			if c.caller != "plain" && c.caller != "also" {
				t.Errorf("%+v: ChargeIf is asked about what was not charged", c)
			}
			return c.charges(status)
		}
	}
	outer := httptest.NewRequest("GET", "/", nil)
	h := handler(l, c.callerOf(), opts, func(w http.ResponseWriter, r *http.Request) {
		if (r != outer) != c.context {
			t.Errorf("%+v: the request is a copy: %t", c, r != outer)
		}
		if d := limit.FromContext(r.Context()).Decision(); d.CountsUnits != (c.cost && c.context) {
			t.Errorf("%+v: the decision says of requests that they differ in cost: %t", c, d.CountsUnits)
		}
		l.want(t, c, c.held()...)
		if c.settles >= 0 {
			settled = limit.FromContext(r.Context()).Settle(r.Context(), c.settles)
		}
		if c.settles >= 0 && c.caller == "also" && opts.Hold > 0 {
			l.want(t, c, "c") // which Settle does not change
		} else if c.settles >= 0 {
			l.want(t, c)
		}
		if c.begins > 0 {
			w.WriteHeader(c.begins)
		}
		if c.panics {
			panic(http.ErrAbortHandler)
		}
	})
	w := &statusOnly{header: http.Header{}}
	func() {
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler {
				panic(p)
			}
		}()
		h.ServeHTTP(w, outer)
		if w.status == 0 {
			w.status = http.StatusOK
		}
	}()
	if fields := rateFields(w.header); (fields == nil) != (c.caller == "unlimited") {
		t.Errorf("%+v: the fields are %q", c, fields)
	}
	return w.status, observed, settled
}

// statusOnly is a ResponseWriter that, unlike a ResponseRecorder, knows of responses that
// have not begun.
type statusOnly struct {
	header http.Header
	status int
}

func (w *statusOnly) Header() http.Header         { return w.header }
func (w *statusOnly) Write(p []byte) (int, error) { w.WriteHeader(http.StatusOK); return len(p), nil }
func (w *statusOnly) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
}

// An engine that cannot decide about one subject, and must not change its usage.
type downFor struct {
	*memory.Limiter
	t *testing.T
}

func (l downFor) Take(ctx context.Context, subject string, p *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	if subject == "down" {
		return ratelimit.Decision{}, ratelimit.ErrUnavailable
	}
	return l.Limiter.Take(ctx, subject, p, cost)
}

func (l downFor) Adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) error {
	if subject == "down" {
		l.t.Errorf("a charge that was not made is changed to %d", units)
	}
	return l.Limiter.Adjust(ctx, subject, d, units, id)
}

// held returns the subjects that are held when the handler begins.
func (c *combination) held() []string {
	switch {
	case !c.hold || !c.context:
		return nil
	case c.caller == "plain":
		return []string{"a"}
	case c.caller == "also":
		return []string{"a", "b", "c"}
	}
	return nil
}

// A holding engine knows by what id it holds a charge to each subject.
type holding struct {
	downFor
	held map[string]string
}

func (l holding) Hold(id string, _ time.Duration) ratelimit.Limiter { return heldBy{l, id} }

func (l holding) Adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) error {
	if held := l.held[subject]; held != "" && id != held {
		l.t.Errorf("the first adjustment of a held charge has the id %q, want that of the hold, %q", id, held)
	}
	if !d.Allowed() {
		l.t.Errorf("a request that was not charged is adjusted to %d", units)
	}
	delete(l.held, subject)
	return l.downFor.Adjust(ctx, subject, d, units, id)
}

func (l holding) want(t *testing.T, c *combination, subjects ...string) {
	t.Helper()
	if held := slices.Sorted(maps.Keys(l.held)); !slices.Equal(held, subjects) {
		t.Errorf("%+v: %q are held, want %q", *c, held, subjects)
	}
}

type heldBy struct {
	holding
	id string
}

func (l heldBy) Take(ctx context.Context, subject string, p *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	d, err := l.downFor.Take(ctx, subject, p, cost)
	if d.Allowed() {
		l.held[subject] = l.id
	}
	return d, err
}

func (l heldBy) TakeAll(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	err := l.downFor.TakeAll(ctx, charges, decisions)
	for i := range charges {
		if decisions[i].Allowed() {
			l.held[charges[i].Subject] = l.id
		}
	}
	return err
}

// Whatever the options are together, a request is charged what the documentation of each
// says, and answered once.
func TestOptionsTogether(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	l := atNow()
	wide := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerMinute(fixedwindow.MaxUnits))
	for range 20_000 {
		c := randomCombination(r)
		for _, subject := range []string{"a", "b", "c", "spent"} {
			testcheck.NoError(t, l.Reset(t.Context(), subject))
		}
		must(l.Take(t.Context(), "spent", tokens, 100))
		engine := holding{downFor{l, t}, map[string]string{}}
		status, observed, settled := c.run(t, engine)
		engine.want(t, &c)
		var used [3]int64
		for i, subject := range []string{"a", "b", "c"} {
			d := must(l.Peek(t.Context(), subject, wide))
			used[i] = fixedwindow.MaxUnits - d.States[0].Remaining
		}
		text := fmt.Sprintf("%+v", c)
		if want := c.usage(); used != want {
			t.Fatalf("%s: used %v, want %v", text, used, want)
		}
		if want := c.status(); status != want {
			t.Fatalf("%s: the status is %d, want %d", text, status, want)
		}
		if observed != 1 {
			t.Fatalf("%s: observed %d times", text, observed)
		}
		if wants := c.served() && c.settles >= 0 && !c.context; (settled != nil) != wants {
			t.Fatalf("%s: Settle returns %v, want an error: %t", text, settled, wants)
		}
	}
}
