package database_test

import (
	"database/sql"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/database"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open opens a database until the test ends.
func open(t *testing.T, name string) store.Store {
	t.Helper()
	s, err := database.Open(t.Context(), name, database.Options{})
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// rawFile opens a SQLite file with the bare driver.
func rawFile(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path+"?_pragma=foreign_keys(1)")
	must(t, err)
	db.SetMaxOpenConns(1)
	return db
}
