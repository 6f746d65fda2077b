package storetest

import (
	"context"
	"errors"
	"io"
	"iter"
	"math"
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
	{"what was saved is there after Close and Open", testUsageReopen},
	{"compacting keeps what it is given", testUsageCompact},
	{"compacting deletes what it is not given", testUsageCompactDeletes},
	{"changes count after everything was compacted", testUsageCompactAll},
	{"compacting bounds what is kept", testUsageBound},
	{"compacting that fails changes nothing", testUsageCompactFails},
	{"loading ends with load's error", testUsageLoadError},
	{"loading can stop early", testUsageStop},
	{"loaded data belongs to the caller", testUsageOwned},
	{"a large save comes back whole", testUsageLarge},
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

func testUsageReopen(t *testing.T, db Opener[UsageStore]) {
	u := db.open(t)
	save(t, u, []byte("h"), changed(records{7: "seven"}))
	if err := u.Close(); err != nil {
		t.Fatalf("Close = %v", err)
	}
	checkUsage(t, db.open(t), []byte("h"), records{7: "seven"})
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

func testUsageLarge(t *testing.T, db Opener[UsageStore]) {
	u := db.open(t)
	want := records{}
	for i := range uint64(5000) {
		want[i*0x9e3779b97f4a7c15] = "usage of one subject in a few windows, and its strikes"
	}
	save(t, u, []byte("h"), changed(want))
	checkUsage(t, u, []byte("h"), want)
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
