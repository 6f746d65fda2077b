package memory_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// All that Records returns, by parts of the keys, is what every Save so far has written.
func TestRecordsAreWhatWasSaved(t *testing.T) {
	for _, size := range []int{100, 5000, 100_000} { // one segment, two, many
		clock := enginetest.NewClock(noon)
		l := newLimiter(t, memory.Options{Now: clock.Now, MaxSubjects: size})
		d := disk{}
		for i := range 90 {
			for range i % 14 {
				take(t, l, fmt.Sprint(i), statePlan)
			}
		}
		save(t, l, d)
		for _, parts := range []uint64{1, 2, 256} {
			got := disk{}
			width := ^uint64(0)/parts + 1 // 0: all keys
			for part := range parts {
				records := l.Records(part*width, part*width+width-1)
				for _, r := range records {
					if width > 0 && r.Key/width != part {
						t.Errorf("%016x is not in part %d of %d", r.Key, part, parts)
					}
				}
				got.write(records)
			}
			if diff := cmp.Diff(d, got); diff != "" || len(d) < 80 {
				t.Fatalf("%d of %d records in %d parts (-saved +got):\n%s", len(got), len(d), parts, diff)
			}
		}
	}
}

// What Records has returned may be stored, so that its end must be reported; and what
// has changed since the last Save must still be saved, after what was forgotten.
func TestRecordsLeaveChangesForSave(t *testing.T) {
	clock := enginetest.NewClock(noon)
	l := newLimiter(t, memory.Options{Now: clock.Now})
	take(t, l, "a", statePlan)
	if err := l.Ban(ctx, "b", time.Hour); err != nil {
		t.Fatal(err)
	}
	d := disk{}
	d.write(l.Records(0, ^uint64(0)))
	if len(d) != 2 {
		t.Fatalf("%d records, want those of a and b, which were not saved yet", len(d))
	}
	want := maps.Clone(d)
	if _, err := l.Unban(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	save(t, l, d)
	if len(d) != 1 {
		t.Errorf("%d records after the ban has ended, want 1", len(d))
	}
	if err := l.Ban(ctx, "b", time.Hour); err != nil {
		t.Fatal(err)
	}
	d.write(l.Records(0, ^uint64(0)))
	save(t, l, d)
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("after the same ban again (-want +got):\n%s", diff)
	}
}
