//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// Servers that start together upgrade the database while their connections are ended, also
// the one that has the lock. A server whose start fails for that reason may try again, and
// each step is applied once.
func TestUpgradesWhoseConnectionsEnd(t *testing.T) {
	testenv.Long(t, "cuts a connection at each step of an upgrade")
	for range 8 {
		url := postgrestest.Database(t)
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		var servers, killer sync.WaitGroup
		stop := make(chan struct{})
		killer.Go(func() {
			defer conn.Close(context.Background())
			for {
				select {
				case <-stop:
					return
				case <-time.After(3 * time.Millisecond):
				}
				_, err := conn.Exec(context.Background(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
					WHERE application_name = 'petstore' AND datname = current_database() AND random() < 0.3`)
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
		for range 4 {
			servers.Go(func() {
				for range 8 {
					s, err := postgres.OpenVersion(t.Context(), url, postgres.Options{}, tomorrow(t))
					switch {
					case err == nil:
						s.Close()
					case !errors.Is(err, store.ErrUnavailable):
						t.Errorf("Open = %v, want an error that wraps ErrUnavailable", err)
					}
				}
			})
		}
		servers.Wait()
		close(stop)
		killer.Wait()
		eventually(t, "the database is open", func() error {
			s, err := postgres.OpenVersion(t.Context(), url, postgres.Options{}, tomorrow(t))
			if err == nil {
				createSoon(t, s)
				s.Close()
			}
			return err
		})
		if n := query[int](t, url, "SELECT count(*)::int FROM petstore_migrations WHERE version_id > 0"); n != 2 {
			t.Errorf("%d steps are applied, want 2", n)
		}
	}
}

// A server that has lost the connection with the lock still takes its step; the next server
// finds that done.
func TestAnUpgradeWithoutItsLock(t *testing.T) {
	url := postgrestest.Database(t)
	create(t, open(t, url, postgres.Options{}))
	postgrestest.Exec(t, url, "CREATE TABLE gate ()")
	slow := with(t, map[string]string{"00002_slow.sql": "-- +goose Up\nALTER TABLE pets ADD COLUMN note text;\nLOCK TABLE gate;"})
	unlock := lock(t, url, "LOCK TABLE gate")
	upgrade := func() error {
		_, _, err := postgres.MigrateVersion(t.Context(), url, slow)
		return err
	}
	first := make(chan error)
	go func() { first <- upgrade() }()
	eventually(t, "the connection with the lock is ended", func() error {
		if n := query[int](t, url, `SELECT count(pg_terminate_backend(l.pid))::int FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
			WHERE l.locktype = 'advisory' AND l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND EXISTS (SELECT FROM pg_stat_activity AS b WHERE b.datname = a.datname AND b.wait_event_type = 'Lock')`); n == 0 {
			return errors.New("no upgrade runs")
		}
		return nil
	})
	second := make(chan error)
	go func() { second <- upgrade() }()
	if err := waiting(t.Context(), url, 2); err != nil {
		t.Error(err)
	}
	unlock()
	if err := <-second; err != nil {
		t.Errorf("the second upgrade = %v", err)
	}
	if err := <-first; err != nil {
		t.Errorf("the first upgrade = %v", err)
	}
}
