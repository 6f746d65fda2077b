package memory_test

import (
	"testing"

	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A new subject takes the place of the one that has used least.
func TestThoseThatUsedLeastGiveWay(t *testing.T) {
	clock := enginetest.NewClock(noon)
	const places = 10
	l := newLimiter(t, memory.Options{MaxSubjects: places, Now: clock.Now})
	use := func(subject string, units int64) {
		t.Helper()
		if _, err := l.Take(ctx, subject, largePlan, units); err != nil {
			t.Fatal(err)
		}
	}
	name := func(i int64) string { return string(rune('a' + i)) }
	for i := range int64(places) {
		use(name(i), 10*(i*7%places+1)) // 10 to 100 units, in no order
	}
	for gone := range int64(places) {
		use("new "+name(gone), 200)
		for i := range int64(places) {
			units := 10 * (i*7%places + 1)
			d, err := l.Peek(ctx, name(i), largePlan)
			if err != nil {
				t.Fatal(err)
			}
			want := 1000 - units
			if units <= 10*(gone+1) {
				want = 1000 // it gave way
			}
			if d.States[0].Remaining != want {
				t.Errorf("after %d new subjects the one that used %d has %d left, want %d", gone+1, units, d.States[0].Remaining, want)
			}
		}
	}
	if s := l.Stats(); s.Subjects != places || s.Evicted != places || s.Refused != 0 {
		t.Errorf("%+v, want %d subjects and as many evicted", s, places)
	}
}
