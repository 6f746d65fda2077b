package memory_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A disk is where tests save to.
type disk map[uint64]memory.Record

func (d disk) write(records []memory.Record) error {
	for _, r := range records {
		if r.Data == nil {
			delete(d, r.Key)
			continue
		}
		d[r.Key] = r
	}
	return nil
}

func save(t testing.TB, l *memory.Limiter, d disk) {
	t.Helper()
	if err := l.Save(d.write); err != nil {
		t.Fatal(err)
	}
}

var statePlan = ratelimit.MustPlan("p",
	ratelimit.Penalty{Strikes: 2, Ban: time.Hour, Growth: 2, Max: 24 * time.Hour, Forgive: 24 * time.Hour},
	ratelimit.PerMinute(10), ratelimit.PerDay(100))

// Each portion of records that could not be written is written by the next Save, also that
// a subject was forgotten.
func TestFailedSaveIsMadeUpFor(t *testing.T) {
	for portion := range 3 {
		t.Run(fmt.Sprint(portion), func(t *testing.T) { testFailedSave(t, portion) })
	}
}

func testFailedSave(t *testing.T, portion int) {
	clock := enginetest.NewClock(noon)
	l := newLimiter(t, memory.Options{Now: clock.Now})
	d := disk{}
	take(t, l, "gone", statePlan)
	save(t, l, d)
	for i := range 10_000 {
		take(t, l, fmt.Sprint(i), statePlan)
	}
	if err := l.Reset(ctx, "gone"); err != nil {
		t.Fatal(err)
	}
	full := errors.New("disk full")
	calls := 0
	err := l.Save(func(records []memory.Record) error {
		if calls++; calls == portion+1 {
			return full
		}
		return d.write(records)
	})
	if !errors.Is(err, full) {
		t.Fatalf("Save: %v, want the error of the write", err)
	}
	save(t, l, d)
	if len(d) != 10_000 {
		t.Errorf("%d records after a save that failed and one that did not, want 10000", len(d))
	}
}

// A subject that comes back while a save of its end fails, and is gone again before the
// next one, is gone from the disk.
func TestFailedSaveOfAnEndIsMadeUpFor(t *testing.T) {
	l := newLimiter(t, memory.Options{})
	d := disk{}
	take(t, l, "a", statePlan)
	save(t, l, d)
	if err := l.Reset(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if err := l.Save(func([]memory.Record) error { take(t, l, "a", statePlan); return errors.New("disk full") }); err == nil {
		t.Fatal("Save returned no error")
	}
	if err := l.Reset(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if save(t, l, d); len(d) > 0 {
		t.Errorf("%d records of a subject that is gone", len(d))
	}
}

func TestSaveWhileChargesGoOn(t *testing.T) {
	l := newLimiter(t, memory.Options{})
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.Quota{Limit: 1 << 30, Window: fixedwindow.MaxLength})
	const each = 20_000
	done := make(chan bool)
	for range 4 {
		go func() {
			for i := range each {
				take(t, l, fmt.Sprint(i%100), plan)
			}
			done <- true
		}()
	}
	d := disk{}
	for finished := 0; finished < 4; {
		select {
		case <-done:
			finished++
		default:
			save(t, l, d)
		}
	}
	save(t, l, d)
	again := newLimiter(t, memory.Options{Secret: l.Secret()})
	if err := again.Load(slices.Collect(maps.Values(d))); err != nil {
		t.Fatal(err)
	}
	var used int64
	for i := range 100 {
		s, err := again.Peek(ctx, fmt.Sprint(i), plan)
		if err != nil {
			t.Fatal(err)
		}
		used += 1<<30 - s.Remaining()
	}
	if used != 4*each {
		t.Errorf("%d units were charged and %d saved", 4*each, used)
	}
}

// What was saved of a subject may end later than what the engine still had of it
// when it was dropped, also if it was dropped while a save of that failed.
func TestSweptSubjectDoesNotComeBack(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprint(fails), func(t *testing.T) { testSweptSubject(t, fails) })
	}
}

func testSweptSubject(t *testing.T, fails bool) {
	clock := enginetest.NewClock(noon)
	l := newLimiter(t, memory.Options{Now: clock.Now, MaxSubjects: 1000})
	day := ratelimit.MustPlan("day", ratelimit.Penalty{}, ratelimit.PerDay(10).Smooth(10))
	minute := ratelimit.MustPlan("minute", ratelimit.Penalty{}, ratelimit.PerMinute(10))
	decision := take(t, l, "a", day)
	d := disk{}
	save(t, l, d)
	if err := l.Adjust(ctx, "a", &decision, 0, ""); err != nil {
		t.Fatal(err)
	}
	take(t, l, "a", minute)
	sweep := func([]memory.Record) error {
		clock.Set(noon.Add(5 * time.Minute))
		for i := range 100 {
			take(t, l, fmt.Sprint(i), minute)
		}
		return errors.New("disk full")
	}
	if !fails {
		_ = sweep(nil)
	} else if err := l.Save(sweep); err == nil {
		t.Fatal("Save returned no error")
	}
	save(t, l, d)
	again := newLimiter(t, memory.Options{Now: clock.Now, Secret: l.Secret()})
	if err := again.Load(slices.Collect(maps.Values(d))); err != nil {
		t.Fatal(err)
	}
	if d := take(t, again, "a", day); d.Remaining() != 9 {
		t.Errorf("%d of the day remain after a refund and a restart, want 9", d.Remaining())
	}
}

func TestMarkSavedIsASaveOfNothing(t *testing.T) {
	clock := enginetest.NewClock(noon)
	l := newLimiter(t, memory.Options{Now: clock.Now})
	d := disk{}
	for i := range 100 {
		take(t, l, fmt.Sprint(i), statePlan)
	}
	if err := l.Ban(ctx, "b", time.Hour); err != nil {
		t.Fatal(err)
	}
	save(t, l, d)
	again := newLimiter(t, memory.Options{Now: clock.Now, Secret: l.Secret()})
	var gone memory.Record
	for key := range d {
		if key%2 == 0 { // not that of the ban
			gone.Key = key
		}
	}
	if err := again.Load(append(slices.Collect(maps.Values(d)), gone)); err != nil {
		t.Fatal(err)
	}
	again.MarkSaved()
	if err := again.Save(func(r []memory.Record) error { return fmt.Errorf("%d records, though nothing changed", len(r)) }); err != nil {
		t.Error(err)
	}
	// The end of what was loaded is still reported.
	if _, err := again.Unban(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	take(t, again, "new", statePlan)
	changed := disk{}
	var ended int
	if err := again.Save(func(records []memory.Record) error {
		for _, r := range records {
			if r.Data == nil {
				ended++
			}
		}
		return changed.write(records)
	}); err != nil {
		t.Fatal(err)
	}
	if ended != 1 || len(changed) != 1 {
		t.Errorf("%d keys were forgotten and %d changed, want 1 of each", ended, len(changed))
	}
}
