//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// limited returns the URL of a database whose statements and pauses have a time limit, which
// others set for other programs. It has been upgraded without them, which may take longer on
// a busy machine.
func limited(t *testing.T) string {
	t.Helper()
	url := postgrestest.Database(t)
	open(t, url, postgres.Options{}).Close()
	name := query[string](t, url, "SELECT current_database()")
	postgrestest.Exec(t, url, "ALTER DATABASE "+name+" SET statement_timeout = '400ms'", "ALTER DATABASE "+name+" SET idle_in_transaction_session_timeout = '400ms'")
	return url
}

// A server may end sessions that are idle. A call that finds all connections of the pool
// ended succeeds with a new one, also if another call has just met the same.
func TestIdleSessionsThatEnd(t *testing.T) {
	const conns = 8
	url := postgrestest.Database(t)
	s := open(t, fmt.Sprintf("%s&pool_max_conns=%d", url, conns), postgres.Options{Timeout: time.Minute})
	postgrestest.Exec(t, url, "ALTER DATABASE "+query[string](t, url, "SELECT current_database()")+" SET idle_session_timeout = 50")
	beside := url + "&idle_session_timeout=0"
	create := func() {
		if _, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"}); err != nil {
			t.Errorf("CreatePet = %v", err)
		}
	}
	for range 3 {
		unlock := lock(t, beside, "LOCK TABLE pets IN ACCESS EXCLUSIVE MODE")
		var wg sync.WaitGroup
		for range conns {
			wg.Go(create)
		}
		if err := waiting(t.Context(), beside, conns); err != nil {
			t.Error(err)
		}
		unlock()
		wg.Wait()
		eventually(t, "the sessions have ended", func() error {
			if n := query[int](t, beside, "SELECT count(*)::int FROM pg_stat_activity WHERE application_name = 'petstore' AND datname = current_database()"); n > 0 {
				return fmt.Errorf("there are %d", n)
			}
			return nil
		})
		create()
	}
	if n := query[int](t, beside, "SELECT count(*)::int FROM pets"); n != 3*(conns+1) {
		t.Errorf("%d pets are stored, want %d", n, 3*(conns+1))
	}
}

// An import takes as long as it needs.
func TestAnImportHasNoTimeLimit(t *testing.T) {
	s := open(t, limited(t), postgres.Options{})
	x := exportOf(10, func(i int64) error {
		time.Sleep(100 * time.Millisecond)
		return nil
	})
	if _, _, err := s.Import(t.Context(), x, importer, noon); err != nil {
		t.Errorf("Import = %v", err)
	}
}

// The connection with the lock of an upgrade is idle while another one works, and must not
// be ended for that.
func TestAnUpgradeKeepsItsLock(t *testing.T) {
	url := limited(t)
	slow := with(t, map[string]string{"00002_slow.sql": "-- +goose Up\nSET LOCAL statement_timeout = 0;\nSELECT pg_sleep(600);"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, _, err := postgres.MigrateVersion(ctx, url, slow)
		done <- err
	}()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	eventually(t, "the upgrade has run for a second", func() error {
		var held *bool
		if err := conn.QueryRow(t.Context(), `SELECT (SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND database = d.oid))
			FROM pg_stat_activity JOIN pg_database AS d USING (datname) WHERE datname = current_database() AND query LIKE '%pg_sleep(600)%'
			AND pid <> pg_backend_pid() AND state = 'active' AND query_start < now() - interval '1s'`).Scan(&held); err != nil {
			return err
		}
		if held == nil || !*held {
			t.Error("an upgrade that runs has lost its lock")
		}
		return nil
	})
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("MigrateVersion = %v, want that it was canceled", err)
	}
}

// Tables that belong to an extension, such as PostGIS, are not those of another program.
func TestTablesOfAnExtension(t *testing.T) {
	url := postgrestest.Database(t)
	postgrestest.Exec(t, url, "CREATE TABLE spatial_ref_sys (srid int)", "ALTER EXTENSION plpgsql ADD TABLE spatial_ref_sys")
	// Without the table, or emptying the database would drop the extension.
	t.Cleanup(func() { postgrestest.Exec(t, url, "ALTER EXTENSION plpgsql DROP TABLE spatial_ref_sys") })
	create(t, open(t, url, postgres.Options{}))
}
