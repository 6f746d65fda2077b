package memory_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
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

func TestStateOutlivesTheEngine(t *testing.T) {
	clock := ratelimittest.NewClock(noon)
	l := newLimiter(t, memory.Options{Now: clock.Now})
	d := disk{}
	for i := range 3000 {
		for range i % 14 { // up to ten are admitted, then two strikes, then a ban
			take(t, l, fmt.Sprint(i), statePlan)
		}
		if i == 1500 {
			save(t, l, d)
		}
	}
	if err := l.Ban(ctx, "by hand", time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Unban(ctx, "13"); err != nil {
		t.Fatal(err)
	}
	if err := l.Reset(ctx, "27"); err != nil {
		t.Fatal(err)
	}
	save(t, l, d)
	if err := l.Save(func(r []memory.Record) error { return fmt.Errorf("%d records, though nothing changed", len(r)) }); err != nil {
		t.Error(err)
	}

	again := newLimiter(t, memory.Options{Now: clock.Now, Secret: l.Secret(), MaxSubjects: 5000})
	if err := again.Load(slices.Collect(maps.Values(d))); err != nil {
		t.Fatal(err)
	}
	for i := range 3000 {
		name := fmt.Sprint(i)
		want, _ := l.Peek(ctx, name, statePlan)
		got, err := again.Peek(ctx, name, statePlan)
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b *ratelimit.Plan) bool { return a == b })); err != nil || diff != "" {
			t.Fatalf("%d after a restart: %v (-before +after)\n%s", i, err, diff)
		}
		// And it goes on from there: strikes are not forgiven by the restart.
		want, got = take(t, l, name, statePlan), take(t, again, name, statePlan)
		if want.Outcome != got.Outcome || want.StrikesLeft != got.StrikesLeft {
			t.Fatalf("%d after a restart: %v with %d strikes left, want %v with %d", i, got.Outcome, got.StrikesLeft, want.Outcome, want.StrikesLeft)
		}
	}
	bans := func(l *memory.Limiter) map[string]ratelimit.Ban {
		all, err := l.Bans(ctx)
		if err != nil {
			t.Fatal(err)
		}
		m := map[string]ratelimit.Ban{}
		for _, b := range all {
			m[b.Subject] = b
		}
		return m
	}
	if diff := cmp.Diff(bans(l), bans(again)); diff != "" || len(bans(l)) < 200 {
		t.Errorf("%d bans before and %d after (-before +after):\n%s", len(bans(l)), len(bans(again)), diff)
	}
}

func TestLoadedBanThatIsEndedIsForgotten(t *testing.T) {
	clock := ratelimittest.NewClock(noon)
	l := newLimiter(t, memory.Options{Now: clock.Now})
	d := disk{}
	if err := l.Ban(ctx, "a", time.Hour); err != nil {
		t.Fatal(err)
	}
	save(t, l, d)
	again := newLimiter(t, memory.Options{Now: clock.Now, Secret: l.Secret()})
	if err := again.Load(slices.Collect(maps.Values(d))); err != nil {
		t.Fatal(err)
	}
	if unbanned, err := again.Unban(ctx, "a"); err != nil || !unbanned {
		t.Fatalf("Unban: %v, %v", unbanned, err)
	}
	save(t, again, d)
	if len(d) != 0 {
		t.Errorf("a ban that was loaded and ended by hand is still among %d records", len(d))
	}
}

// A file that every Save adds its records to says, read from its beginning, what
// the last state was.
func TestLoadReplaysWhatEverySaveWrote(t *testing.T) {
	clock := ratelimittest.NewClock(noon)
	l := newLimiter(t, memory.Options{Now: clock.Now})
	var file []memory.Record
	step := func(what func() error) {
		t.Helper()
		if err := what(); err != nil {
			t.Fatal(err)
		}
		if err := l.Save(func(r []memory.Record) error { file = append(file, r...); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	for _, subject := range []string{"unbanned", "reset", "banned again", "used again"} {
		step(func() error { take(t, l, subject, statePlan); return l.Ban(ctx, subject, time.Hour) })
	}
	step(func() error { _, err := l.Unban(ctx, "unbanned"); return err })
	for _, subject := range []string{"reset", "banned again", "used again"} {
		step(func() error { return l.Reset(ctx, subject) })
	}
	step(func() error { return l.Ban(ctx, "banned again", time.Minute) })
	step(func() error { take(t, l, "used again", statePlan); take(t, l, "used again", statePlan); return nil })

	again := newLimiter(t, memory.Options{Now: clock.Now, Secret: l.Secret()})
	if err := again.Load(file); err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{"unbanned", "reset", "banned again", "used again"} {
		want, _ := l.Peek(ctx, subject, statePlan)
		got, err := again.Peek(ctx, subject, statePlan)
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b *ratelimit.Plan) bool { return a == b })); err != nil || diff != "" {
			t.Errorf("%s: %v (-saved +loaded)\n%s", subject, err, diff)
		}
	}
	if want, got := l.Stats().Subjects, again.Stats().Subjects; got != want {
		t.Errorf("%d places in use after Load, want %d", got, want)
	}
}

// A caller that keeps only the file of the last run writes all of it anew.
func TestFirstSavePassesOnWhatWasLoaded(t *testing.T) {
	clock := ratelimittest.NewClock(noon)
	l := newLimiter(t, memory.Options{Now: clock.Now})
	take(t, l, "a", statePlan)
	if err := l.Ban(ctx, "b", time.Hour); err != nil {
		t.Fatal(err)
	}
	first, second := disk{}, disk{}
	save(t, l, first)
	again := newLimiter(t, memory.Options{Now: clock.Now, Secret: l.Secret()})
	if err := again.Load(slices.Collect(maps.Values(first))); err != nil {
		t.Fatal(err)
	}
	save(t, again, second)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the first Save after a Load (-loaded +saved):\n%s", diff)
	}
}

func TestFailedSaveIsMadeUpFor(t *testing.T) {
	clock := ratelimittest.NewClock(noon)
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
		if calls++; calls == 2 {
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

func TestSaveWhileChargesGoOn(t *testing.T) {
	l := newLimiter(t, memory.Options{})
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.Quota{Limit: 1 << 30, Window: ratelimit.MaxWindow})
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
// when it was dropped.
func TestSweptSubjectDoesNotComeBack(t *testing.T) {
	clock := ratelimittest.NewClock(noon)
	l := newLimiter(t, memory.Options{Now: clock.Now, MaxSubjects: 1000})
	day := ratelimit.MustPlan("day", ratelimit.Penalty{}, ratelimit.PerDay(10))
	minute := ratelimit.MustPlan("minute", ratelimit.Penalty{}, ratelimit.PerMinute(10))
	decision := take(t, l, "a", day)
	d := disk{}
	save(t, l, d)
	if err := l.Refund(ctx, "a", &decision); err != nil {
		t.Fatal(err)
	}
	take(t, l, "a", minute)
	clock.Set(noon.Add(5 * time.Minute))
	for i := range 100 {
		take(t, l, fmt.Sprint(i), minute) // sweeps
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
	clock := ratelimittest.NewClock(noon)
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

// All that Records returns, by parts of the keys, is what every Save so far has written.
func TestRecordsAreWhatWasSaved(t *testing.T) {
	for _, size := range []int{100, 5000, 100_000} { // one segment, two, many
		clock := ratelimittest.NewClock(noon)
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
	clock := ratelimittest.NewClock(noon)
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
