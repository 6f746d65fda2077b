//go:build unix

package postgrestest_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
)

func one(t *testing.T, url, text string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), text).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// The next test to use a database finds nothing of the one before, not even its sessions.
func TestDatabasesAreEmptied(t *testing.T) {
	postgrestest.Database(t) // skips the test without PostgreSQL
	oids := map[int]bool{}
	for range 2 {
		t.Run("", func(t *testing.T) {
			var conn *pgx.Conn
			t.Cleanup(func() { // after the database was emptied
				if conn.Ping(context.Background()) == nil {
					t.Error("a session outlives its test")
				}
				conn.Close(context.Background())
			})
			url := postgrestest.Database(t)
			var err error
			if conn, err = pgx.Connect(context.Background(), url); err != nil {
				t.Fatal(err)
			}
			oids[one(t, url, "SELECT oid::int FROM pg_database WHERE datname = current_database()")] = true
			if n := one(t, url, `SELECT count(*) FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace
				WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'`); n > 0 {
				t.Errorf("the database has %d relations of the test before", n)
			}
			if one(t, url, "SELECT (current_setting('work_mem') = '77MB')::int") > 0 {
				t.Error("the database has a setting of the test before")
			}
			postgrestest.Exec(t, url, "CREATE TABLE t (n int)", "CREATE SCHEMA other", "CREATE TABLE other.t (n int)",
				"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET work_mem = %L', current_database(), '77MB'); END $$")
		})
	}
	if len(oids) != 1 {
		t.Errorf("two tests had %d databases, want the same", len(oids))
	}
}
