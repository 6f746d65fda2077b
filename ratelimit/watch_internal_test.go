package ratelimit

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// Without a body net/http notices by itself that the client is gone.
func TestOnlyBodiesAreWatched(t *testing.T) {
	body := io.NopCloser(strings.NewReader("body"))
	for name, c := range map[string]struct {
		major   int
		body    io.ReadCloser
		watched bool
	}{
		"HTTP/1":                     {1, body, true},
		"HTTP/1 without a body":      {1, nil, false},
		"HTTP/1 with the empty body": {1, http.NoBody, false},
		"HTTP/2":                     {2, body, true},
		"HTTP/2 without a body":      {2, nil, false},
	} {
		if got := watchBody(&http.Request{ProtoMajor: c.major, Body: c.body}) != nil; got != c.watched {
			t.Errorf("%s: watched is %v, want %v", name, got, c.watched)
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
