package sqlite

import (
	"path/filepath"
	"testing"
)

// An upgrade that cannot be done is tried at each start, and must not leave a copy of
// the file each time.
func TestAnUpgradeThatChangesNothingLeavesNoCopy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pets.db")
	migrateTo(t, path, mainSchema, 3)
	f, err := newFile(path, Options{}.withDefaults().BusyTimeout)
	if err != nil {
		t.Fatal(err)
	}
	db, err := f.connect(1)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	change := func(statement string) {
		t.Helper()
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	copies := func(want int) {
		t.Helper()
		if got, err := filepath.Glob(path + ".v*.backup"); err != nil || len(got) != want {
			t.Errorf("copies are %v, %v; want %d", got, err, want)
		}
	}
	change("ALTER TABLE goose_db_version ADD COLUMN x CHECK (version_id <> 5)") // stops the second step
	for range 3 {
		if s, err := Open(t.Context(), path, Options{}); err == nil {
			s.Close()
			t.Fatal("Open upgraded a file that refuses it")
		}
	}
	copies(1) // of the file before the first step, which was done
	change("ALTER TABLE goose_db_version DROP COLUMN x")
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	copies(2)
}
