package memory

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// A disk is where tests save to.
type disk map[uint64]Record

func (d disk) write(records []Record) error {
	for _, r := range records {
		if r.Data == nil {
			delete(d, r.Key)
			continue
		}
		d[r.Key] = r
	}
	return nil
}

func save(t testing.TB, l *Limiter, d disk) {
	t.Helper()
	must(t, l.Save(d.write))
}

// records returns the records of all keys.
func records(l *Limiter) (all []Record) {
	for portion := range l.portions(false) {
		all = append(all, portion...)
	}
	return all
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
	clock := ratelimittest.NewClock(noon)
	l := newLimiter(t, Options{Now: clock.Now})
	d := disk{}
	take(t, l, "gone", statePlan)
	save(t, l, d)
	for i := range 10_000 {
		take(t, l, fmt.Sprint(i), statePlan)
	}
	must(t, l.Reset(ctx, "gone"))
	full := errors.New("disk full")
	calls := 0
	err := l.Save(func(records []Record) error {
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

// What was loaded counts as saved; its end is still reported.
func TestSaveAfterLoad(t *testing.T) {
	clock := ratelimittest.NewClock(noon)
	l := newLimiter(t, Options{Now: clock.Now})
	d := disk{}
	for i := range 100 {
		take(t, l, fmt.Sprint(i), statePlan)
	}
	must(t, l.Ban(ctx, "b", time.Hour, ""))
	save(t, l, d)
	again := restart(t, l, slices.Collect(maps.Values(d)))
	if err := again.Save(func(r []Record) error { return fmt.Errorf("%d records, though nothing changed", len(r)) }); err != nil {
		t.Error(err)
	}
	// The end of what was loaded is still reported.
	_, err := again.Unban(ctx, "b")
	must(t, err)
	take(t, again, "new", statePlan)
	changed := disk{}
	var ended int
	if err := again.Save(func(records []Record) error {
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

// The file of Open gets all records: what every Save so far has written.
func TestFileHasWhatWasSaved(t *testing.T) {
	for _, size := range []int{100, 5000, 100_000} { // one segment, two, many
		clock := ratelimittest.NewClock(noon)
		l := newLimiter(t, Options{Now: clock.Now, MaxSubjects: size})
		subjects := min(size*9/10, 2*saveBatch)
		for i := range subjects {
			for range i % 14 {
				take(t, l, fmt.Sprint(i), statePlan)
			}
		}
		d, got := disk{}, disk{}
		save(t, l, d)
		var file bytes.Buffer
		must(t, l.writeState(&file))
		var state fileState
		must(t, json.Unmarshal(file.Bytes(), &state))
		got.write(state.Records)
		if diff := gocmp.Diff(d, got); diff != "" || len(d) < subjects*9/10 || !bytes.Equal(state.Secret, l.Secret()) {
			t.Fatalf("%d of %d records, secret %x, want %x (-saved +got):\n%s", len(got), len(d), state.Secret, l.Secret(), diff)
		}
	}
}

// Whatever happened to subjects, they continue after a restart where they were: from the
// last record of each key, and from all records in order. That holds although saves fail,
// subjects give way to others or are swept, and a file is replaced by all records.
func TestRestartsChangeNothing(t *testing.T) {
	race.Skip(t)
	for seed := range uint64(1000) {
		h := newSaveHistory(t, seed)
		for range 60 {
			h.step()
		}
		h.save(nil)
		h.clock.Set(h.clock.Now().Add(time.Duration(h.rand.IntN(600)) * time.Second))
		h.compare("the last records", h.load(h.lastRecords()))
		h.compare("all records", h.load(h.file))
	}
}

var savePlans = []*ratelimit.Plan{
	ratelimit.MustPlan("day", ratelimit.Penalty{}, ratelimit.PerDay(10)),
	ratelimit.MustPlan("minute", ratelimit.Penalty{}, ratelimit.PerMinute(10)),
	ratelimit.MustPlan("smooth", ratelimit.Penalty{}, ratelimit.PerDay(10).Smooth(10)),
	statePlan,
}

var saveSubjects = []string{"a", "b", "c"}

type saveHistory struct {
	t      *testing.T
	seed   uint64
	rand   *rand.Rand
	clock  *ratelimittest.Clock
	bound  int
	engine *Limiter
	last   disk     // the last record of each key
	file   []Record // all records
	refund func()   // gives back what was charged
	others int      // subjects of no interest
	saving bool
	log    []string
}

func newSaveHistory(t *testing.T, seed uint64) *saveHistory {
	h := &saveHistory{t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 0)), clock: ratelimittest.NewClock(noon), last: disk{}, refund: func() {}}
	h.bound = []int{2, 6, 1000}[h.rand.IntN(3)]
	h.engine = newLimiter(t, Options{MaxSubjects: h.bound, Now: h.clock.Now})
	return h
}

// step does one random thing. At the bound there may be no room for it.
func (h *saveHistory) step() {
	name, plan := saveSubjects[h.rand.IntN(len(saveSubjects))], savePlans[h.rand.IntN(len(savePlans))]
	step := h.rand.IntN(13)
	if h.saving {
		step = h.rand.IntN(8) // all but those that save
	}
	h.log = append(h.log, fmt.Sprint(step, name, plan.Name()))
	switch step {
	case 0, 1, 2:
		for range []int{1, 1, 2, 13}[h.rand.IntN(4)] {
			if d, err := h.engine.Take(ctx, name, plan, 1); err == nil {
				l, before := h.engine, h.refund
				h.refund = func() { before(); _ = l.Adjust(ctx, name, &d, 0, "") }
			}
		}
	case 3:
		h.refund()
		h.refund = func() {}
	case 4:
		_ = h.engine.Ban(ctx, name, time.Duration(1+h.rand.IntN(3600))*time.Second, []string{"", "a text", "strikes"}[h.rand.IntN(3)])
	case 5:
		_, _ = h.engine.Unban(ctx, name)
	case 6:
		_ = h.engine.Reset(ctx, name)
	case 7:
		h.clock.Set(h.clock.Now().Add(time.Duration(h.rand.IntN(600)-30) * time.Second))
	case 8:
		h.save(nil)
	case 9:
		h.save(h.step) // while the disk is full
	case 10: // others sweep those that have expired, and take their places
		for range h.rand.IntN(20) {
			h.others++
			_, _ = h.engine.Take(ctx, fmt.Sprint("other ", h.others), savePlans[1], 1)
			_ = h.engine.Reset(ctx, fmt.Sprint("other ", h.others-1))
		}
	case 11:
		h.last, h.file = disk{}, nil
		h.write(records(h.engine))
	case 12:
		if h.rand.IntN(4) == 0 {
			h.save(nil)
			h.engine, h.refund = h.load([][]Record{h.lastRecords(), h.file}[h.rand.IntN(2)]), func() {}
		}
	}
}

func (h *saveHistory) write(records []Record) {
	h.file = append(h.file, records...)
	_ = h.last.write(records)
}

// save saves. If a step is given, the disk is full, and the step is done meanwhile.
func (h *saveHistory) save(meanwhile func()) {
	_ = h.engine.Save(func(records []Record) error {
		if meanwhile != nil {
			h.saving = true
			meanwhile()
			h.saving = false
			return errors.New("disk full")
		}
		h.write(records)
		return nil
	})
}

// lastRecords returns the last record of each key. Those that have expired come last, as
// there may be no room for them.
func (h *saveHistory) lastRecords() []Record {
	return slices.SortedFunc(maps.Values(h.last), func(a, b Record) int { return cmp.Compare(b.Expires, a.Expires) })
}

func (h *saveHistory) load(records []Record) *Limiter {
	l := newLimiter(h.t, Options{MaxSubjects: h.bound + 10, Now: h.clock.Now, Secret: h.engine.Secret()})
	must(h.t, l.Load(records))
	return l
}

func (h *saveHistory) compare(what string, again *Limiter) {
	for _, name := range saveSubjects {
		for _, plan := range savePlans {
			want, _ := h.engine.Peek(ctx, name, plan)
			got, err := again.Peek(ctx, name, plan)
			if diff := diffDecisions(want, got); err != nil || diff != "" {
				h.t.Fatalf("seed %d: %s with plan %s from %s: %v (-before +after)\n%s\nafter the steps %v", h.seed, name, plan.Name(), what, err, diff, h.log)
			}
		}
	}
}

// A limit that is saved is read as it was, also one of 2³², which stands for that of a window
// that has not begun. So does 2³² in what was saved before limits were larger.
func TestLimitsAreSaved(t *testing.T) {
	for _, limit := range []int64{1, 15, 1<<32 - 1<<28, 1 << 32, 1<<32 + 1<<29, roundLimit(fixedwindow.MaxUnits), notBegun} {
		want := account{n: 1, all: [maxWindows]window{{kind: fixedwindow.KindOf(60), limit: limit, used: 5, end: 60}}}
		got, err := decodeAccount(want.encode(nil))
		if err != nil || got != want {
			t.Errorf("limit %d: %+v was read, %v, want %+v", limit, got, err, want)
		}
	}
	before := binary.AppendVarint([]byte{120}, 1<<32)
	if a, err := decodeAccount(append(before, 0, 120)); err != nil || a.all[0].begun() {
		t.Errorf("a window that has not begun, of the format before: %+v, %v", a, err)
	}
}
