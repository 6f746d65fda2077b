package ratelimit

import (
	"io"
	"net/http"
	"strings"
	"testing"
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
	d := Decision{
		Outcome: Limited, Cost: 1, StrikesLeft: 3,
		Plan: MustPlan("p", DefaultPenalty(), PerMinute(1), PerDay(100)),
	}
	d.States[1].Remaining = 9
	first := d.Error(Caller{})
	if n := testing.AllocsPerRun(100, func() {
		if d.Error(Caller{}) != first {
			t.Error("the same denial is another error")
		}
	}); n > 0 {
		t.Errorf("a denial allocates %v times, want 0", n)
	}
	d.StrikesLeft = 2
	if d.Error(Caller{}) == first {
		t.Error("another number of strikes left is the same error")
	}
}
