package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// A UsageStore is a [store.Usage] that can be closed.
type UsageStore interface {
	store.Usage
	io.Closer
}

// RunUsage tests a [store.Usage]. For each of its subtests it calls newDatabase,
// which prepares an empty database. One handle is open at a time.
func RunUsage(t *testing.T, newDatabase func(t *testing.T) Opener[UsageStore]) {
	for _, tt := range usageTests {
		t.Run("Usage/"+tt.name, func(t *testing.T) {
			t.Parallel()
			tt.run(t, newDatabase(t))
		})
	}
}

var usageTests = []struct {
	name string
	run  func(t *testing.T, db Opener[UsageStore])
}{
	{"nothing saved loads as nothing", func(t *testing.T, db Opener[UsageStore]) {
		checkUsage(t, db.open(t), nil, records{})
	}},
	{"saves build on each other", testUsageSaves},
	{"compacting keeps what it is given", testUsageCompact},
	{"compacting deletes what it is not given", testUsageCompactDeletes},
	{"changes count after everything was compacted", testUsageCompactAll},
	{"compacting bounds what is kept", testUsageBound},
	{"loading ends with load's error", testUsageLoadError},
	{"loading can stop early", testUsageStop},
	{"loaded data belongs to the caller", testUsageOwned},
	{"a context that has ended ends every call", testUsageCanceled},
	{"after Close every call is unavailable", testUsageClosed},
}

func testUsageSaves(t *testing.T, db Opener[UsageStore]) {
	u := db.open(t)
	first := records{0: "zero", 1: "one", math.MaxUint64: "max", 1 << 63: "sign", 1<<63 - 1: "\x00\xff"}
	save(t, u, []byte("h1"), changed(first))
	checkUsage(t, u, []byte("h1"), first)

	save(t, u, []byte("h2"), changed(records{1: "changed", 2: "two"}, math.MaxUint64, 0, 12345))
	checkUsage(t, u, []byte("h2"), records{1: "changed", 2: "two", 1 << 63: "sign", 1<<63 - 1: "\x00\xff"})

	save(t, u, []byte{}, changed(nil, 1, 1<<63, 1<<63-1))
	checkUsage(t, u, []byte{}, records{2: "two"})

	save(t, u, nil, nil)
	checkUsage(t, u, []byte{}, records{2: "two"})

	// Of records with one key the last counts, with data or without.
	var many []memory.Record
	for i := range 100 {
		r := memory.Record{Key: uint64(i % 7), Data: []byte{byte(i)}, Expires: later}
		if i >= 95 {
			r.Data = nil
		}
		many = append(many, r)
	}
	many = append(many, memory.Record{Key: 5, Data: []byte("back"), Expires: later})
	save(t, u, nil, many)
	checkUsage(t, u, []byte{}, records{2: "\x5d", 3: "\x5e", 5: "back"})
}

func testUsageLoadError(t *testing.T, db Opener[UsageStore]) {
	u := db.open(t)
	save(t, u, []byte("h"), changed(records{7: "seven"}))
	broken := errors.New("header of a later version")
	err := u.LoadUsage(t.Context(), func([]byte, iter.Seq[[]memory.Record]) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("LoadUsage = %v, want an error that wraps %v", err, broken)
	}
	checkUsage(t, u, []byte("h"), records{7: "seven"})
}

func testUsageStop(t *testing.T, db Opener[UsageStore]) {
	u := db.open(t)
	all := records{1: "a", 2: "b", 3: "c"}
	save(t, u, []byte("h"), changed(all))
	n := 0
	err := u.LoadUsage(t.Context(), func(_ []byte, portions iter.Seq[[]memory.Record]) error {
		for range portions {
			n++
			break
		}
		return nil
	})
	if err != nil || n != 1 {
		t.Errorf("LoadUsage = %v after %d portions, want nil after one", err, n)
	}
	checkUsage(t, u, []byte("h"), all)
}

func testUsageOwned(t *testing.T, db Opener[UsageStore]) {
	u := db.open(t)
	want := records{1: "aaaa", 2: "bbbb", 3: "cccc"}
	save(t, u, []byte("h"), changed(want))
	var held []memory.Record
	err := u.LoadUsage(t.Context(), func(_ []byte, portions iter.Seq[[]memory.Record]) error {
		for portion := range portions {
			held = append(held, portion...)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("LoadUsage = %v", err)
	}
	save(t, u, []byte("h"), changed(records{4: "dddd"}))
	got := records{}
	for _, r := range held {
		got[r.Key] = string(r.Data)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records changed after they were loaded (-want +got):\n%s", diff)
	}
}

// usageCalls makes one call of each method.
func usageCalls(ctx context.Context, u store.Usage) map[string]error {
	return map[string]error{
		"SaveUsage":    u.SaveUsage(ctx, nil, changed(records{1: "x"})),
		"CompactUsage": u.CompactUsage(ctx, records{}.all),
		"LoadUsage":    u.LoadUsage(ctx, func([]byte, iter.Seq[[]memory.Record]) error { return nil }),
	}
}

func testUsageCanceled(t *testing.T, db Opener[UsageStore]) {
	u := db.open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range usageCalls(ctx, u) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a canceled context = %v, want an error that wraps context.Canceled", name, err)
		}
	}
	checkUsage(t, u, nil, records{})
}

func testUsageClosed(t *testing.T, db Opener[UsageStore]) {
	u := db.open(t)
	if err := u.Close(); err != nil {
		t.Fatalf("Close = %v", err)
	}
	for name, err := range usageCalls(t.Context(), u) {
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s after Close = %v, want an error that wraps ErrUnavailable", name, err)
		}
	}
}

// testUsageCompact saves and compacts for a long time, and opens the database again and
// again. What is stored must be what was saved last, also where a compaction came
// between a change and its save.
func testUsageCompact(t *testing.T, db Opener[UsageStore]) {
	u := db.open(t)
	random := rand.New(rand.NewPCG(1, 2))
	saved := records{}
	for round := range 300 {
		changes, gone := records{}, []uint64(nil)
		for range random.IntN(40) {
			key := uint64(random.IntN(500)) * 0x9e3779b97f4a7c15
			if random.IntN(4) == 0 {
				delete(changes, key)
				gone = append(gone, key)
			} else if _, found := changes[key]; !found {
				changes[key] = fmt.Sprintf("%0*d", random.IntN(200), round)
			}
		}
		now := maps.Clone(saved)
		for _, key := range gone {
			delete(now, key)
		}
		maps.Copy(now, changes)
		// Of what a save deletes and stores, the latter counts.
		batch := append(changed(nil, gone...), changed(changes)...)
		if round%3 == 0 {
			compact(t, u, now) // the engine has changed since its last save
		}
		save(t, u, []byte("h"), batch)
		saved = now
		compact(t, u, saved)
		if round%50 == 0 {
			checkUsage(t, u, []byte("h"), saved)
			if err := u.Close(); err != nil {
				t.Fatalf("Close = %v", err)
			}
			u = db.open(t)
			if round%100 == 0 {
				checkUsage(t, u, []byte("h"), saved)
			}
		}
	}
	checkUsage(t, u, []byte("h"), saved)
}

// testUsageCompactDeletes gives nothing for the ranges that are asked for. The records
// there are gone, although no save has deleted them, and the others stay.
func testUsageCompactDeletes(t *testing.T, db Opener[UsageStore]) {
	u := db.open(t)
	want := records{}
	for i := range uint64(2000) {
		want[i*0x9e3779b97f4a7c15] = "x"
	}
	save(t, u, []byte("h"), changed(want))
	asked := 0
	if err := u.CompactUsage(t.Context(), func(first, last uint64) []memory.Record {
		for key := range want {
			if first <= key && key <= last {
				delete(want, key)
				asked++
			}
		}
		return nil
	}); err != nil {
		t.Fatalf("CompactUsage = %v", err)
	}
	if asked == 0 || len(want) == 0 {
		t.Errorf("%d of 2000 records were asked for, want some and not all", asked)
	}
	checkUsage(t, u, []byte("h"), want)
}

// testUsageBound saves the same records again and again. What is loaded must stay a few
// times as large as they are.
func testUsageBound(t *testing.T, db Opener[UsageStore]) {
	u := db.open(t)
	all := records{}
	for i := range uint64(20_000) {
		all[i*0x9e3779b97f4a7c15] = "usage of one subject in a few windows, and its strikes"
	}
	var keys []uint64
	for key := range all {
		keys = append(keys, key)
	}
	for range 300 {
		some := records{}
		for range 1000 {
			key := keys[rand.IntN(len(keys))]
			some[key] = all[key]
		}
		save(t, u, []byte("h"), changed(some))
		compact(t, u, all)
	}
	loaded := 0
	if err := u.LoadUsage(t.Context(), func(_ []byte, portions iter.Seq[[]memory.Record]) error {
		for portion := range portions {
			loaded += len(portion)
		}
		return nil
	}); err != nil {
		t.Fatalf("LoadUsage = %v", err)
	}
	if loaded > 3*len(all) {
		t.Errorf("%d records were loaded after 300,000 saves of %d, want at most 3 times as many as these", loaded, len(all))
	}
	checkUsage(t, u, []byte("h"), all)
}

// testUsageCompactAll compacts so much that what was saved is only in what compacting has
// written. What is saved after the database was opened again must count all the same.
func testUsageCompactAll(t *testing.T, db Opener[UsageStore]) {
	u := db.open(t)
	save(t, u, []byte("h"), changed(records{1: strings.Repeat("x", 4<<20)}))
	all := records{1: "one", 1 << 63: "two"}
	for range 20 {
		compact(t, u, all)
	}
	for _, next := range []string{"three", "four"} {
		if err := u.Close(); err != nil {
			t.Fatalf("Close = %v", err)
		}
		u = db.open(t)
		checkUsage(t, u, []byte("h"), all)
		all[1] = next
		save(t, u, []byte("h"), changed(records{1: next}))
		checkUsage(t, u, []byte("h"), all)
	}
}

type records map[uint64]string

// later is an instant, in Unix seconds, at which no record has expired yet.
const later = 4_000_000_000

// changed returns records to save: those given, and those without data.
func changed(from records, gone ...uint64) []memory.Record {
	var rs []memory.Record
	for key, data := range from {
		rs = append(rs, memory.Record{Key: key, Data: []byte(data), Expires: later})
	}
	for _, key := range gone {
		rs = append(rs, memory.Record{Key: key})
	}
	return rs
}

// all returns the records with keys from first to last.
func (r records) all(first, last uint64) []memory.Record {
	var rs []memory.Record
	for key, data := range r {
		if first <= key && key <= last {
			rs = append(rs, memory.Record{Key: key, Data: []byte(data), Expires: later})
		}
	}
	return rs
}

// compact compacts what is stored, which is to be all.
func compact(t *testing.T, u store.Usage, all records) {
	t.Helper()
	if err := u.CompactUsage(t.Context(), all.all); err != nil {
		t.Fatalf("CompactUsage = %v", err)
	}
}

func save(t *testing.T, u store.Usage, header []byte, rs []memory.Record) {
	t.Helper()
	if err := u.SaveUsage(t.Context(), header, rs); err != nil {
		t.Fatalf("SaveUsage = %v", err)
	}
}

func checkUsage(t *testing.T, u store.Usage, wantHeader []byte, want records) {
	t.Helper()
	calls := 0
	err := u.LoadUsage(t.Context(), func(header []byte, portions iter.Seq[[]memory.Record]) error {
		calls++
		if diff := cmp.Diff(wantHeader, header); diff != "" {
			t.Errorf("header (-want +got):\n%s", diff)
		}
		got := records{}
		for portion := range portions {
			for _, r := range portion {
				if len(r.Data) == 0 {
					delete(got, r.Key)
					continue
				}
				got[r.Key] = string(r.Data)
				if r.Expires != later {
					t.Errorf("record %d was loaded with expiry %d, want %d", r.Key, r.Expires, int64(later))
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("records (-want +got):\n%s", diff)
		}
		return nil
	})
	if err != nil || calls != 1 {
		t.Errorf("LoadUsage = %v after %d calls of load, want nil after one", err, calls)
	}
}
