package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

func TestCheckUsage(t *testing.T) {
	path := sqlite.UsagePath(tempDatabase(t))
	if _, err := sqlite.CheckUsage(t.Context(), path, sqlite.Options{}, doNotLoad); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("CheckUsage of no file = %v, want an error that wraps fs.ErrNotExist", err)
	}
	u, err := sqlite.OpenUsage(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(100) {
		if err := u.SaveUsage(t.Context(), nil, []memory.Record{{Key: i, Data: []byte("x"), Expires: 4_000_000_000}}); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := sqlite.CheckUsage(t.Context(), path, sqlite.Options{BusyTimeout: 20 * time.Millisecond}, doNotLoad); !errors.Is(err, sqlite.ErrInUse) {
		t.Errorf("CheckUsage while a server runs = %+v, %v, want an error that wraps ErrInUse", r, err)
	}
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := sqlite.CheckUsage(t.Context(), path, sqlite.Options{}, doNotLoad)
	if err != nil || len(r.Problems) > 0 || r.Rows["changes"] != 100 {
		t.Errorf("CheckUsage = %+v, %v, want a sound file with 100 changes", r, err)
	}
	content := readFile(t, path)
	writeFile(t, path, content[:len(content)-4096])
	if r, err = sqlite.CheckUsage(t.Context(), path, sqlite.Options{}, doNotLoad); err != nil || !r.Damaged {
		t.Errorf("CheckUsage of a file that is cut off = %+v, %v, want that it is damaged", r, err)
	}
}

func doNotLoad(store.Usage) error { return nil }

func checkUsageOnly(ctx context.Context, path string) error {
	n, found := 0, ""
	_, err := sqlite.CheckUsage(ctx, sqlite.UsagePath(path), sqlite.Options{}, func(u store.Usage) error {
		return u.LoadUsage(ctx, func(header []byte, portions iter.Seq[[]memory.Record]) error {
			found = string(header)
			for portion := range portions {
				n += len(portion)
			}
			return nil
		})
	})
	if err == nil && (found != "h" || n != 1) {
		err = fmt.Errorf("%d records with the header %q, want 1 with h", n, found)
	}
	return err
}
