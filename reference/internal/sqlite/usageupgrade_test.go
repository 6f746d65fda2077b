package sqlite

import (
	"bytes"
	"database/sql"
	"iter"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// firstUsage makes limiter state of the first version of its schema.
func firstUsage(t *testing.T, path string) *sql.DB {
	t.Helper()
	f, err := newFile(path, Options{}.withDefaults().BusyTimeout)
	if err != nil {
		t.Fatal(err)
	}
	db, err := f.connect(1)
	if err != nil {
		t.Fatal(err)
	}
	provider, _, err := usageSchema.provider(db)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.useWAL(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "INSERT INTO header (only, data) VALUES (1, x'68')"); err != nil {
		t.Fatal(err)
	}
	return db
}

func TestUsageOfTheFirstVersionIsConverted(t *testing.T) {
	want := map[uint64]memory.Record{}
	for i, key := range []uint64{
		2, 255, 1<<56 - 1, 1 << 56, 1<<56 + 1, 1<<63 - 1, 1 << 63, 1<<63 + 1, 0xfeffffffffffffff, 0xff00000000000000, math.MaxUint64,
	} {
		data := bytes.Repeat([]byte{0, byte(i), 0xff, '\n'}, 1+i*i*200)
		want[key] = memory.Record{Key: key, Expires: int64(i) * 400_000_000, Data: data}
	}
	path := filepath.Join(t.TempDir(), "usage")
	db := firstUsage(t, path)
	for _, r := range want {
		if _, err := db.ExecContext(t.Context(), "INSERT INTO usage VALUES (?, ?, ?)", int64(r.Key), r.Expires, r.Data); err != nil {
			t.Fatal(err)
		}
	}
	db.Close()

	for range 2 { // the second time there is nothing to do
		u, err := OpenUsage(t.Context(), path, Options{})
		if err != nil {
			t.Fatalf("OpenUsage = %v", err)
		}
		got := map[uint64]memory.Record{}
		if err := u.LoadUsage(t.Context(), func(header []byte, portions iter.Seq[[]memory.Record]) error {
			if string(header) != "h" {
				t.Errorf("the header is %q, want h", header)
			}
			for portion := range portions {
				for _, r := range portion {
					got[r.Key] = r
				}
			}
			return nil
		}); err != nil {
			t.Fatalf("LoadUsage = %v", err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("records after the conversion (-want +got):\n%s", diff)
		}
		if err := u.Close(); err != nil {
			t.Fatalf("Close = %v", err)
		}
	}
	if r, err := CheckUsage(t.Context(), path, Options{}, func(store.Usage) error { return nil }); err != nil || len(r.Problems) > 0 {
		t.Errorf("CheckUsage after the conversion = %+v, %v, want a sound file", r, err)
	}
	if left := copies(t, path); len(left) > 0 {
		t.Errorf("%v is left, want no copy", left)
	}
}

func TestAConversionThatFailsKeepsTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "usage")
	db := firstUsage(t, path)
	defer db.Close()
	execute := func(text string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	execute("INSERT INTO usage VALUES (42, 4000000000, x'78')")
	execute("CREATE TABLE changes (x)") // is in the way
	db.Close()
	if u, err := OpenUsage(t.Context(), path, Options{}); err == nil {
		u.Close()
		t.Fatal("OpenUsage converted a file with a table that is in the way")
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	execute("UPDATE usage SET expires = expires WHERE key = 42")
	execute("DROP TABLE changes")
	db.Close()
	u, err := OpenUsage(t.Context(), path, Options{})
	if err != nil {
		t.Fatalf("OpenUsage without that table = %v", err)
	}
	u.Close()
}

func TestUsageOfANewerVersionIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "usage")
	u, err := OpenUsage(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.db.ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (1000, true)"); err != nil {
		t.Fatal(err)
	}
	u.Close()
	want := "use the newer version, or delete the file, which resets all quotas and ends all bans"
	if u, err = OpenUsage(t.Context(), path, Options{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("OpenUsage = %v, %v, want an error that says %q", u, err, want)
	}
}

func FuzzRecords(f *testing.F) {
	f.Add(appendRecords(nil, []memory.Record{{Key: 7, Expires: 1, Data: []byte("x")}, {Key: math.MaxUint64}}))
	f.Add([]byte{1, 2, 3})
	f.Add(bytes.Repeat([]byte{0xff}, headSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		records := parseRecords(b, func(uint64) bool { return false })
		again := appendRecords(nil, records)
		if n := len(records); n > 0 && cmp.Equal(records[n-1], damaged) {
			again = appendRecords(nil, records[:n-1])
		}
		if !bytes.HasPrefix(b, again) {
			t.Errorf("%x was read as %v", b, records)
		}
	})
}
