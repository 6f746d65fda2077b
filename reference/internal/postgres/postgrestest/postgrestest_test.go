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

func TestDatabasesAreFresh(t *testing.T) {
	for range 2 {
		url := postgrestest.Database(t)
		postgrestest.Exec(t, url, "CREATE TABLE t (n int)", "INSERT INTO t VALUES (7)")
		if got := one(t, url, "SELECT n FROM t"); got != 7 {
			t.Errorf("the table has %d, want 7", got)
		}
	}
}

func TestServerKeepsItsDataOverAKill(t *testing.T) {
	s := postgrestest.Start(t, "max_connections=17")
	s.Exec("postgres", "CREATE TABLE t (n int)", "INSERT INTO t VALUES (7)")
	if got := one(t, s.URL("postgres"), "SELECT current_setting('max_connections')::int"); got != 17 {
		t.Errorf("max_connections is %d, want 17", got)
	}
	s.Restart()
	if got := one(t, s.URL("postgres"), "SELECT n FROM t"); got != 7 {
		t.Errorf("after a kill the table has %d, want 7", got)
	}
	s.Stop()
	if conn, err := pgx.Connect(t.Context(), s.URL("postgres")); err == nil {
		conn.Close(t.Context())
		t.Error("a stopped server answers")
	}
	s.Restart("max_connections=18")
	if got := one(t, s.URL("postgres"), "SELECT n + current_setting('max_connections')::int FROM t"); got != 25 {
		t.Errorf("after a stop the table and max_connections add up to %d, want 25", got)
	}
}

func TestStandbyTakesOver(t *testing.T) {
	s := postgrestest.Start(t)
	standby := s.StartStandby()
	s.Synchronous()
	s.Exec("postgres", "SET synchronous_commit = remote_apply", "CREATE TABLE t AS SELECT 7 AS n")
	if got := one(t, standby.URL("postgres"), "SELECT n FROM t"); got != 7 {
		t.Errorf("the standby has %d, want 7", got)
	}
	s.Kill()
	standby.Promote()
	standby.Exec("postgres", "UPDATE t SET n = 8")
}
