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

func save(t *testing.T, u store.Usage, header []byte, rs []memory.Record) {
	t.Helper()
	if err := u.SaveUsage(t.Context(), header, rs); err != nil {
		t.Fatalf("SaveUsage = %v", err)
	}
}

func checkUsage(t *testing.T, u store.Usage, wantHeader []byte, want records) {
	t.Helper()
	calls := 0
	err := u.LoadUsage(t.Context(), func(header []byte, seq iter.Seq[memory.Record]) error {
		calls++
		if diff := cmp.Diff(wantHeader, header); diff != "" {
			t.Errorf("header (-want +got):\n%s", diff)
		}
		got := records{}
		for r := range seq {
			if _, twice := got[r.Key]; twice {
				t.Errorf("record %d was loaded twice", r.Key)
			}
			got[r.Key] = string(r.Data)
			if r.Expires == 0 {
				t.Errorf("record %d was loaded without its expiry", r.Key)
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
