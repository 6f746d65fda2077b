package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/ratelimit/memory"
)

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

func testUsageCompactFails(t *testing.T, db Opener[UsageStore]) {
	u := db.open(t)
	all := records{1: "one", 1 << 63: "two"}
	save(t, u, []byte("h"), changed(all))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := u.CompactUsage(ctx, records{}.all); !errors.Is(err, context.Canceled) {
		t.Errorf("CompactUsage with a canceled context = %v, want an error that wraps context.Canceled", err)
	}
	checkUsage(t, u, []byte("h"), all)
}
