package persist_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/persist"
)

func TestADamagedRecordIsLeftOut(t *testing.T) {
	db := openUsage(t, filepath.Join(t.TempDir(), "usage"))
	l := load(t, db, noon)
	for _, subject := range []string{"a", "b", "c", "d", "e"} {
		take(t, l, subject, 10)
	}
	save(t, l, db, noon)
	header, all := records(t, db)
	for i := range all[1:3] {
		all[1+i].Data = []byte{0xff}
	}
	if err := db.SaveUsage(t.Context(), header, all); err != nil {
		t.Fatal(err)
	}

	restored, damaged, err := persist.Load(t.Context(), db, memory.Options{Now: at(noon)})
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
			_, _, err := persist.Load(t.Context(), db, memory.Options{})
			switch {
			case errors.Is(err, persist.ErrDamaged) != tt.damaged:
				t.Errorf("Load = %v, want that it is damaged: %v", err, tt.damaged)
			case !tt.damaged && (err == nil || !strings.Contains(err.Error(), "delete the usage file")):
				t.Errorf("Load = %v, want an error that says what to do", err)
			}
		})
	}
}
