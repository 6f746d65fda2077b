package memory

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
)

// The longest of all calls is one that changes the size of a table. What it moves
// is bounded, however many subjects there are.
func TestTablesStaySmall(t *testing.T) {
	race.Skip(t)
	const bound = 40 * subjectsInSegment
	l, err := New(Options{MaxSubjects: bound})
	if err != nil {
		t.Fatal(err)
	}
	plan := ratelimit.MustPlan("p", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerDay(1000))
	for i := range bound + bound/2 {
		if _, err := l.Take(context.Background(), strconv.Itoa(i), plan, 1); err != nil {
			t.Fatal(err)
		}
	}
	const most = 2 * subjectsInSegment
	for i := range l.tables {
		if n := l.tables[i].Load().slots; n > most {
			t.Errorf("with %d subjects table %d has %d slots, want %d at most", bound, i, n, most)
		}
	}
}

// A table gives memory back when its subjects are gone: at least four slots of ten
// are in use, or the table is one of the smallest.
func TestTablesShrink(t *testing.T) {
	clock := enginetest.NewClock(noonSharp())
	l := internalLimiter(t, Options{MaxSubjects: subjectsInSegment, Now: clock.Now})
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(60))
	s := &l.segments[0]
	for i := range 4000 {
		internalTake(t, l, strconv.Itoa(i), plan, 1)
	}
	if n := s.table.Load().slots; n < 4000 {
		t.Fatalf("4000 subjects are held in %d slots", n)
	}
	for hour := range 40 {
		clock.Set(clock.Now().Add(time.Hour))
		for i := range 100 {
			internalTake(t, l, fmt.Sprint(hour, " ", i), plan, 1)
		}
	}
	if n := s.table.Load().slots; n > 2*minSlots && s.used*100 < n*emptiest {
		t.Errorf("%d of %d slots are in use hours after all but a few subjects left, want %d%% at least", s.used, n, emptiest)
	}
}

// BenchmarkResize is the longest of all calls: the table of a full segment, with two
// windows a subject, grows.
func BenchmarkResize(b *testing.B) {
	const slots = subjectsInSegment * 100 / fullest
	t, key := newTable(slots, firstWindow+2), newHashKey(nil)
	for n := range subjectsInSegment {
		h := key.sum(strconv.Itoa(n))
		i, _ := t.find(h)
		t.slot(i).setHash(h)
	}
	for b.Loop() {
		t.resized(slots+slots/4, t.stride)
	}
}
