package transport

import (
	"fmt"
	"testing"
	"time"
)

// Pauses returns the number of pauses that t remembers.
func Pauses(t *Transport) int {
	t.pauses.mu.Lock()
	defer t.pauses.mu.Unlock()
	return len(t.pauses.byKey)
}

// WithoutJitter makes t wait for exactly as long as servers ask.
func WithoutJitter(t *Transport) { t.random = func(time.Duration) time.Duration { return 0 } }

// A client of ever new keys, such as hosts that refuse it once, does not fill its memory
// with pauses that are over; those in force stay.
func TestPausesThatAreOverAreRemoved(t *testing.T) {
	var p pauses
	now := noon
	p.begin("long", pause{until: noon.Add(24 * time.Hour)}, now, false)
	most := 0
	for i := range 10_000 {
		now = now.Add(time.Second)
		p.begin(fmt.Sprint("key ", i), pause{until: now.Add(10 * time.Second)}, now, false)
		most = max(most, len(p.byKey))
	}
	if most > 300 {
		t.Errorf("%d pauses were kept, of which 11 were in force", most)
	}
	if _, paused, _ := p.at("long", now); !paused {
		t.Error("a pause that is in force was removed")
	}
}
