package limit

import (
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// Without a body net/http notices by itself that the client is gone.
func TestOnlyBodiesAreWatched(t *testing.T) {
	for body, want := range map[io.ReadCloser]bool{nil: false, http.NoBody: false, io.NopCloser(strings.NewReader("body")): true} {
		if got := watchBody(&http.Request{Body: body}) != nil; got != want {
			t.Errorf("%v: watched is %v, want %v", body, got, want)
		}
	}
}

// An engine that nothing else needs is not kept.
func TestEnginesAreForgotten(t *testing.T) {
	held := func() (n int) {
		unnamed.Range(func(any, any) bool { n++; return true })
		return n
	}
	before := held()
	for range 300 {
		engine, err := memory.New(memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := New(engine, Clients{}.Identify(func(*http.Request) (string, *ratelimit.Plan, error) { return "", nil, nil }), Options{}); err != nil {
			t.Fatal(err)
		}
	}
	for held() > before { // until the test times out
		runtime.GC()
	}
}

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
