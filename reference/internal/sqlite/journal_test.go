package sqlite_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
)

// interrupted returns the path of a database, of which a process that was killed has
// changed half.
func interrupted(t *testing.T) string {
	t.Helper()
	path, _ := filled(t)
	db := raw(t, path)
	execute(t, db, "PRAGMA journal_mode = DELETE", "PRAGMA cache_size = 2", manyPets,
		"BEGIN IMMEDIATE", "DELETE FROM idempotency_keys", "DELETE FROM pets", manyPets)
	copied := filepath.Join(t.TempDir(), "pets.db")
	writeFile(t, copied, readFile(t, path))
	writeFile(t, copied+"-journal", readFile(t, path+"-journal"))
	return copied
}

const manyPets = `INSERT INTO pets (name, category_id, status)
	WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 2000) SELECT 'Rex', i, 'sold' FROM n`

// What a process that was killed has not committed is not read as if it had: the file
// would seem damaged, or to have other pets.
func TestAnInterruptedWriteIsNotRestored(t *testing.T) {
	saved, path := interrupted(t), tempDatabase(t)
	want := "a process was killed while it wrote to the file; run petstore check for it once"
	if r, err := sqlite.Restore(t.Context(), saved, path, operator, later, sqlite.Options{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Restore = %+v, %v, want that it says %q", r, err, want)
	}
	checkLeft(t, path)
	for range 2 {
		r, err := sqlite.Check(t.Context(), saved, sqlite.Options{})
		if err != nil || len(r.Problems) > 0 || r.Rows["pets"] != 2001 {
			t.Errorf("Check = %+v, %v, want a sound file with the 2001 pets that were committed", r, err)
		}
	}
	if r := restore(t, saved, path); r.Rows["pets"] != 2001 {
		t.Errorf("Restore after a check = %+v, want the 2001 pets that were committed", r)
	}
}
