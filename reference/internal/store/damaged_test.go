package store_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

func TestADamagedRecordIsLeftOut(t *testing.T) {
	db := openUsage(t, filepath.Join(t.TempDir(), "usage"))
	l := load(t, db, noon)
	for _, subject := range []string{"a", "b", "c", "d", "e"} {
		take(t, l, subject, 10)
	}
	save(t, l, db)
	header, all := records(t, db)
	for i := range all[1:3] {
		all[1+i].Data = []byte{0xff}
	}
	db = openUsage(t, filepath.Join(t.TempDir(), "usage"))
	if err := db.SaveUsage(t.Context(), header, all); err != nil {
		t.Fatal(err)
	}

	restored, damaged, err := store.LoadLimiter(t.Context(), db, memory.Options{Now: at(noon)})
	if err != nil || damaged != 2 {
		t.Fatalf("Load = %d damaged, %v, want 2 and no error", damaged, err)
	}
	kept := 0
	for _, subject := range []string{"a", "b", "c", "d", "e"} {
		if remaining(t, restored, subject) == 90 {
			kept++
		}
	}
	if kept != 3 {
		t.Errorf("%d subjects kept their usage, want the 3 whose records are sound", kept)
	}
}

// What a file has of a save is cut off, as no SQLite has written it.
func TestADamagedSaveIsLeftOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "usage")
	db := openUsage(t, path)
	l := load(t, db, noon)
	for i := range 100 {
		take(t, l, fmt.Sprint(i), 10)
	}
	save(t, l, db)
	header, all := records(t, db)
	db = openUsage(t, path+"2")
	for i := range 2 {
		if err := db.SaveUsage(t.Context(), header, all[i*50:][:50]); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := sql.Open("sqlite", path+"2")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.ExecContext(t.Context(), "UPDATE changes SET data = substr(data, 1, length(data) - 1) WHERE number = 1"); err != nil {
		t.Fatal(err)
	}
	file.Close()
	restored, damaged, err := store.LoadLimiter(t.Context(), openUsage(t, path+"2"), memory.Options{Now: at(noon)})
	if err != nil || damaged != 1 || restored.Stats().Subjects != 99 {
		t.Errorf("Load = %d damaged, %v, want 1 damaged and the other 99 loaded", damaged, err)
	}
}

func TestStateThatCannotBeRead(t *testing.T) {
	for _, tt := range []struct {
		name    string
		header  []byte
		damaged bool
	}{
		{"from a newer version", append([]byte{2}, make([]byte, 16)...), false},
		{"overwritten", make([]byte, 17), true},
		{"cut off", []byte{1}, true},
		{"with half a secret", []byte{1, 2, 3}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db := openUsage(t, filepath.Join(t.TempDir(), "usage"))
			if err := db.SaveUsage(t.Context(), tt.header, nil); err != nil {
				t.Fatal(err)
			}
			_, _, err := store.LoadLimiter(t.Context(), db, memory.Options{})
			switch {
			case errors.Is(err, store.ErrDamaged) != tt.damaged:
				t.Errorf("Load = %v, want that it is damaged: %v", err, tt.damaged)
			case !tt.damaged && (err == nil || !strings.Contains(err.Error(), "delete the usage file")):
				t.Errorf("Load = %v, want an error that says what to do", err)
			}
		})
	}
}
