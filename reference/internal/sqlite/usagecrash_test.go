package sqlite_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"
	"strconv"
	"testing"

	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
)

// roundSize is the number of records of a round.
const roundSize = 300

// A round is the number of a save. Its records have keys in all parts, and the number as
// data.
type round int

func (n round) all(first, last uint64) []memory.Record {
	var records []memory.Record
	for i := range uint64(roundSize) {
		if key := i * ((1<<64 - 1) / roundSize); first <= key && key <= last {
			records = append(records, memory.Record{Key: key, Data: binary.BigEndian.AppendUint64(nil, uint64(n)), Expires: 4_000_000_000})
		}
	}
	return records
}

func saveRound(ctx context.Context, u *sqlite.Usage, n int) error {
	return u.SaveUsage(ctx, []byte("h"), round(n).all(0, 1<<64-1))
}

// loadRound returns which round is stored. It is an error if there is more than one, or
// only a part of one.
func loadRound(ctx context.Context, u *sqlite.Usage) (n int, err error) {
	stored := map[uint64]uint64{}
	err = u.LoadUsage(ctx, func(_ []byte, portions iter.Seq[[]memory.Record]) error {
		for portion := range portions {
			for _, r := range portion {
				stored[r.Key] = binary.BigEndian.Uint64(r.Data)
			}
		}
		return nil
	})
	for _, got := range stored {
		if n == 0 {
			n = int(got)
		}
		if int(got) != n || len(stored) != roundSize {
			return n, errors.Join(err, fmt.Errorf("%d records are stored, of the rounds %d, %d and others; want %d of one round", len(stored), n, got, roundSize))
		}
	}
	return n, err
}

// saveUsageWithoutEnd saves round after round, and prints each once it is saved.
func saveUsageWithoutEnd(ctx context.Context, path string) error {
	u, err := sqlite.OpenUsage(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	n, err := loadRound(ctx, u)
	for err == nil {
		n++
		err = saveRound(ctx, u, n)
		fmt.Fprintln(os.Stdout, n)
		if err == nil {
			err = u.CompactUsage(ctx, round(n).all)
		}
	}
	return err
}

// Each save is stored as a whole or not at all, at whatever point of a save or of a
// compaction the process is killed.
func TestAProcessKilledInASaveKeepsOneRound(t *testing.T) {
	path := sqlite.UsagePath(tempDatabase(t))
	for _, rounds := range []int{1, 7, 60, 200, 90} {
		lines := killAfter(t, program(t, "save usage without end", path), rounds)
		printed, err := strconv.Atoi(lines[len(lines)-1])
		if err != nil {
			t.Fatal(err)
		}
		u, err := sqlite.OpenUsage(t.Context(), path, sqlite.Options{})
		if err != nil {
			t.Fatalf("OpenUsage after a kill = %v", err)
		}
		got, err := loadRound(t.Context(), u)
		if err != nil || got < printed || got > printed+1 {
			t.Errorf("round %d is stored (%v), want %d, which was saved last, or the next", got, err, printed)
		}
		u.Close()
		checkIntegrity(t, path)
	}
}

// loadAll returns all records that are stored.
func loadAll(t *testing.T, u *sqlite.Usage) map[uint64]memory.Record {
	t.Helper()
	all := map[uint64]memory.Record{}
	if err := u.LoadUsage(t.Context(), func(_ []byte, portions iter.Seq[[]memory.Record]) error {
		for portion := range portions {
			for _, r := range portion {
				all[r.Key] = r
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}
