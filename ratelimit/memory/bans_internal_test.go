package memory

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
)

// The names of banned subjects take little memory, however long and however many they
// are, and none once the bans are over. A ban without a name is in force, also after a
// restart.
func TestNamesAreBounded(t *testing.T) {
	const subjects = 2000
	ctx := context.Background()
	strict := ratelimit.Penalty{Strikes: 1, Ban: time.Minute, Growth: 1, Max: time.Minute, Forgive: 7 * 24 * time.Hour}
	plan := ratelimit.MustPlan("p", strict, ratelimit.PerMinute(1))
	for _, c := range []struct{ length, listed int }{{40, subjects}, {longestName, mostNames / longestName}, {longestName + 1, 0}, {1 << 16, 0}} {
		t.Run(fmt.Sprint(c.length), func(t *testing.T) {
			clock := enginetest.NewClock(noonSharp())
			l := internalLimiter(t, Options{MaxSubjects: subjectsInSegment, Now: clock.Now})
			name := func(i int) string { return strings.Repeat("n", c.length-8) + fmt.Sprintf("%8d", i) }
			for i := range subjects {
				banned := name(i)
				for range 2 { // the second ban needs no second name
					if err := l.Ban(ctx, banned, time.Second); err != nil {
						t.Fatal(err)
					}
				}
				if kept := l.segments[0].names.all[l.key.sum(banned)]; kept != "" && unsafe.StringData(kept) == unsafe.StringData(banned) {
					t.Fatal("the name is kept with the string that it is a part of")
				}
				for range 4 { // of which the last two are banned, and the ban outlives that made by hand
					clock.Set(noonSharp().Add(2 * time.Second))
					l.Take(ctx, name(i), plan, 1)
				}
				clock.Set(noonSharp())
			}
			clock.Set(noonSharp().Add(3 * time.Second))
			var saved []Record
			if err := l.Save(func(r []Record) error { saved = append(saved, r...); return nil }); err != nil {
				t.Fatal(err)
			}
			again := internalLimiter(t, Options{MaxSubjects: subjectsInSegment, Now: clock.Now, Secret: l.Secret()})
			if err := again.Load(saved); err != nil {
				t.Fatal(err)
			}
			for _, l := range []*Limiter{l, again} {
				if bans, err := l.Bans(ctx); err != nil || len(bans) != c.listed {
					t.Errorf("%d bans are listed with error %v, want %d", len(bans), err, c.listed)
				}
				if unbanned, err := l.Unban(ctx, name(7)); err != nil || !unbanned {
					t.Errorf("unban: %v, %v, want true", unbanned, err)
				}
				n, sum := &l.segments[0].names, 0
				for _, name := range n.all {
					sum += len(name)
				}
				if n.bytes != sum || n.bytes > mostNames {
					t.Errorf("the names take %d bytes, and %d are counted, want %d at most", sum, n.bytes, mostNames)
				}
			}
			clock.Set(noonSharp().Add(2 * time.Minute)) // a ban is over, and its record is not
			internalTake(t, l, name(8), plan, 1)
			if _, found := l.segments[0].names.all[l.key.sum(name(8))]; found {
				t.Error("a subject was admitted, and its name is still kept")
			}
			clock.Set(noonSharp().Add(14 * 24 * time.Hour))
			for i := range subjects * 2 { // which sweep
				internalTake(t, l, fmt.Sprint(i), plan, 1)
			}
			if n := &l.segments[0].names; n.all != nil || n.bytes != 0 {
				t.Errorf("%d names of %d bytes are kept two weeks later", len(n.all), n.bytes)
			}
		})
	}
}
