package limit

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/ratelimit"
)

// Without a body net/http notices by itself that the client is gone.
func TestOnlyBodiesAreWatched(t *testing.T) {
	for body, want := range map[io.ReadCloser]bool{nil: false, http.NoBody: false, io.NopCloser(strings.NewReader("body")): true} {
		if got := watchBody(&http.Request{Body: body}) != nil; got != want {
			t.Errorf("%v: watched is %v, want %v", body, got, want)
		}
	}
}

// A flood of denials of one kind costs no memory: their error is made once.
func TestDenialsOfOneKindAreMadeOnce(t *testing.T) {
	d := ratelimit.Decision{
		Outcome: ratelimit.Limited, Cost: 1, StrikesLeft: 3,
		Plan: ratelimit.MustPlan("p", ratelimit.DefaultPenalty(), ratelimit.PerMinute(1), ratelimit.PerDay(100)),
	}
	d.States[1].Remaining = 9
	Denial(ratelimit.Caller{}, &d) // nothing is kept of a plan that is used once
	first := Denial(ratelimit.Caller{}, &d)
	if n := testing.AllocsPerRun(100, func() {
		if Denial(ratelimit.Caller{}, &d) != first {
			t.Error("the same denial is another error")
		}
	}); n > 0 {
		t.Errorf("a denial allocates %v times, want 0", n)
	}
	d.StrikesLeft = 2
	if Denial(ratelimit.Caller{}, &d) == first {
		t.Error("another number of strikes left is the same error")
	}
}
