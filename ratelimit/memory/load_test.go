package memory_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

func TestStateOutlivesTheEngine(t *testing.T) {
	clock := enginetest.NewClock(noon)
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
	clock := enginetest.NewClock(noon)
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
	clock := enginetest.NewClock(noon)
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
	clock := enginetest.NewClock(noon)
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
