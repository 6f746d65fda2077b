package memory_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

var minutePlan = ratelimit.MustPlan("minute", ratelimit.Penalty{}, ratelimit.PerMinute(10))

// Evicted counts subjects that were forgotten before their time. A subject whose
// windows are over is not one of them.
func TestEvictedCountsOnlyThoseThatWereStillCounted(t *testing.T) {
	clock := enginetest.NewClock(noon)
	l := newLimiter(t, memory.Options{Now: clock.Now, MaxSubjects: 1})
	take(t, l, "a", minutePlan)
	clock.Set(noon.Add(30 * time.Second)) // the minute ends
	take(t, l, "b", minutePlan)
	if s := l.Stats(); s.Subjects != 1 || s.Evicted != 0 || s.Refused != 0 {
		t.Errorf("b came when the minute of a was over: %+v, want 1 subject, and none evicted or refused", s)
	}
	take(t, l, "c", minutePlan)
	if s := l.Stats(); s.Subjects != 1 || s.Evicted != 1 || s.Refused != 0 {
		t.Errorf("c came in the minute of b: %+v, want 1 subject and 1 evicted", s)
	}
}

// A subject that was saved and then gave way to another one is not loaded again.
func TestSaveTellsWhichSubjectsGaveWay(t *testing.T) {
	for name, wait := range map[string]time.Duration{
		"within its minute":        0,
		"when its minute was over": 30 * time.Second,
	} {
		for change, more := range map[string]int{"unchanged since the save": 0, "changed since the save": 1} {
			t.Run(name+", "+change, func(t *testing.T) {
				clock := enginetest.NewClock(noon)
				l := newLimiter(t, memory.Options{Now: clock.Now, MaxSubjects: 1})
				d := disk{}
				take(t, l, "a", minutePlan)
				save(t, l, d)
				for range more {
					take(t, l, "a", minutePlan)
				}
				clock.Set(noon.Add(wait))
				take(t, l, "b", minutePlan)
				save(t, l, d)
				live := 0
				for _, r := range d {
					if r.Expires > clock.Now().Unix() {
						live++
					}
				}
				if live != 1 {
					t.Errorf("%d subjects that still mean something are saved, want b alone", live)
				}
			})
		}
	}
}

// Save does not report that a subject has expired, also if another one has its
// place.
func TestSaveDoesNotReportExpiredSubjects(t *testing.T) {
	clock := enginetest.NewClock(noon)
	l := newLimiter(t, memory.Options{Now: clock.Now, MaxSubjects: 1})
	take(t, l, "a", minutePlan)
	save(t, l, disk{})
	clock.Set(noon.Add(30 * time.Second)) // the minute ends
	take(t, l, "b", minutePlan)
	err := l.Save(func(records []memory.Record) error {
		if len(records) != 1 || len(records[0].Data) == 0 {
			t.Errorf("saved %+v, want b alone", records)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Nor does it report that a subject was dropped because it had expired.
func TestSaveDoesNotReportIdleSubjects(t *testing.T) {
	clock := enginetest.NewClock(noon)
	l := newLimiter(t, memory.Options{Now: clock.Now, MaxSubjects: 1000})
	take(t, l, "a", minutePlan)
	save(t, l, disk{})
	clock.Set(noon.Add(5 * time.Minute))
	for i := range 100 {
		take(t, l, fmt.Sprint(i), minutePlan) // sweeps
	}
	if held := l.Stats().Subjects; held != 100 {
		t.Fatalf("%d subjects are held, want 100 and not a", held)
	}
	err := l.Save(func(records []memory.Record) error {
		for _, r := range records {
			if len(r.Data) == 0 {
				t.Errorf("saved that %x was forgotten", r.Key)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A ban takes one place. Requests during it take no other.
func TestRequestsDuringABanTakeNoPlace(t *testing.T) {
	clock := enginetest.NewClock(noon)
	l := newLimiter(t, memory.Options{Now: clock.Now})
	if err := l.Ban(ctx, "a", time.Hour); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if d := take(t, l, "a", statePlan); d.Outcome != ratelimit.Banned {
			t.Fatalf("got %v, want banned", d.Outcome)
		}
	}
	if held := l.Stats().Subjects; held != 1 {
		t.Errorf("%d places are in use, want 1", held)
	}
}

// A ban that is loaded is in force, also for a subject whose account is loaded
// after it, or is there already.
func TestLoadedBanIsInForce(t *testing.T) {
	clock := enginetest.NewClock(noon)
	l := newLimiter(t, memory.Options{Now: clock.Now})
	take(t, l, "a", statePlan)
	if err := l.Ban(ctx, "a", time.Hour); err != nil {
		t.Fatal(err)
	}
	d := disk{}
	save(t, l, d)
	var records []memory.Record
	for _, r := range d {
		records = append(records, r)
	}
	if len(records) != 2 {
		t.Fatalf("%d records, want an account and a ban", len(records))
	}
	for range 2 {
		records[0], records[1] = records[1], records[0]
		again := newLimiter(t, memory.Options{Now: clock.Now, Secret: l.Secret()})
		if err := again.Load(records); err != nil {
			t.Fatal(err)
		}
		if d := take(t, again, "a", statePlan); d.Outcome != ratelimit.Banned {
			t.Errorf("records %x, %x: got %v, want banned", records[0].Key, records[1].Key, d.Outcome)
		}
		if bans, err := again.Bans(ctx); err != nil || len(bans) != 1 || bans[0].Subject != "a" {
			t.Errorf("records %x, %x: bans %v, %v, want that of a", records[0].Key, records[1].Key, bans, err)
		}
	}
}

// When there is no place for a strike, the decision stands and is counted as
// refused. A ban for which there is no place is an error. Neither changes the
// account.
func TestNoPlaceForARecord(t *testing.T) {
	clock := enginetest.NewClock(noon)
	l := newLimiter(t, memory.Options{MaxSubjects: 1, Now: clock.Now})
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{
		Strikes: 1, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour,
	}, ratelimit.PerMinute(1))
	take(t, l, "a", plan)
	for i := range uint64(5) {
		if d := take(t, l, "a", plan); d.Outcome != ratelimit.Limited || d.Struck {
			t.Errorf("request %d over the limit: %v with Struck %v, want limited without, since no strike can be kept", i, d.Outcome, d.Struck)
		}
		if s := l.Stats(); s.Refused != i+1 {
			t.Errorf("%d strikes found no place, and %d are counted", i+1, s.Refused)
		}
	}
	if err := l.Ban(ctx, "a", time.Hour); !errors.Is(err, ratelimit.ErrUnavailable) {
		t.Errorf("a ban without a place: %v, want ErrUnavailable", err)
	}
	if bans, err := l.Bans(ctx); err != nil || len(bans) > 0 {
		t.Errorf("bans %v, %v, want none", bans, err)
	}
	if d := take(t, l, "a", plan); d.Outcome != ratelimit.Limited {
		t.Errorf("after a ban that found no place: %v, want limited", d.Outcome)
	}
	clock.Set(noon.Add(30 * time.Second)) // the minute ends
	if d := take(t, l, "a", plan); !d.Allowed() {
		t.Errorf("in the next minute: %v, want allowed", d.Outcome)
	}
}
