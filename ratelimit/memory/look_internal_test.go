package memory

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
)

// At the bound a decision looks at few places, however many subjects are held and wherever
// they are. A place that can be had is found nearly always, and never taken from a
// subject that is held.
func TestFewPlacesAreLookedAt(t *testing.T) {
	race.Skip(t)
	minute := ratelimit.MustPlan("minute", ratelimit.Penalty{}, ratelimit.PerMinute(10))
	for free := range 3 {
		for _, group := range []bool{false, true} {
			t.Run(fmt.Sprint(free, " not held, group: ", group), func(t *testing.T) {
				clock, random := enginetest.NewClock(noonSharp()), rand.New(rand.NewPCG(uint64(free), 1))
				l := internalLimiter(t, Options{MaxSubjects: subjectsInSegment, Now: clock.Now, Secret: []byte("a secret that every run shares..")})
				s := &l.segments[0]
				for i := range subjectsInSegment - free {
					internalTake(t, l, fmt.Sprint(i), minute, 5+random.Int64N(4))
				}
				refused := 0
				for i := range 2000 {
					held := fmt.Sprint(random.IntN(subjectsInSegment - free))
					charges := []ratelimit.Charge{{Subject: fmt.Sprint("new ", i), Plan: minute, Cost: 1}}
					if group {
						charges = append(charges, ratelimit.Charge{Subject: held, Plan: minute, Cost: 1})
					}
					switch random.IntN(8) { // what ends and moves a little of what is known
					case 0:
						_, _ = l.Take(context.Background(), held, minute, 1)
					case 1:
						_ = l.Ban(context.Background(), held, time.Minute) // finds no place, or takes one
						_, _ = l.Unban(context.Background(), held)
					}
					s.looked = 0
					err := l.TakeAll(context.Background(), charges, make([]ratelimit.Decision, len(charges)))
					if errors.Is(err, ratelimit.ErrUnavailable) {
						refused++
					} else if err != nil {
						t.Fatal(err)
					}
					if i%20 == 0 && l.wrong() != "" {
						t.Fatalf("call %d: %s", i, l.wrong())
					}
					if s.looked > maxLooked {
						t.Fatalf("call %d looked at %d places, want %d at most", i, s.looked, maxLooked)
					}
				}
				if most := 100; free > 0 && refused > most {
					t.Errorf("%d of 2000 new subjects were refused, want %d at most", refused, most)
				}
				for i := range subjectsInSegment - free {
					if d, err := l.Peek(context.Background(), fmt.Sprint(i), minute); err != nil || d.Remaining() > 5 {
						t.Fatalf("subject %d, which is held, was forgotten", i)
					}
				}
			})
		}
	}
}
