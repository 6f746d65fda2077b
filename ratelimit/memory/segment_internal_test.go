package memory

import (
	"context"
	"strconv"
	"testing"

	"github.com/animalstore/gatehouse/ratelimit"
)

// The longest of all calls is one that changes the size of a table. What it moves
// is bounded, however many subjects there are.
func TestTablesStaySmall(t *testing.T) {
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
