package storetest

import (
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

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
