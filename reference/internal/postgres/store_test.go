//go:build unix

package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
	"github.com/animalstore/gatehouse/reference/internal/store/storetest"
)

// The settings of a user or a database, which others chose for other programs, do not
// change what is stored and read.
func TestConformance(t *testing.T) {
	const exec = "&default_query_exec_mode=exec"
	westernEurope := []string{
		"client_encoding = 'LATIN1'", "DateStyle = 'German'", "bytea_output = 'escape'", "standard_conforming_strings = off",
		"backslash_quote = off", "array_nulls = off", "IntervalStyle = 'sql_standard'", "transform_null_equals = on",
	}
	for _, tt := range []struct {
		name, parameters string
		settings         []string
		pooled, long     bool
	}{
		{name: "settings of western Europe", settings: westernEurope},
		{name: "defaults", long: true},
		{name: "settings of India", parameters: exec, long: true, settings: []string{
			"client_encoding = 'SQL_ASCII'", "DateStyle = 'SQL, MDY'", "TimeZone = 'Asia/Kolkata'", "plan_cache_mode = 'force_generic_plan'",
			"default_transaction_isolation = 'serializable'",
		}},
		{name: "one connection", parameters: "&pool_max_conns=1", long: true},
		// Through PgBouncer in transaction mode, each transaction can have another connection.
		{name: "a pooler", parameters: exec, settings: westernEurope, pooled: true, long: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.long {
				testenv.Long(t, "runs the suite once more")
			}
			storetest.Run(t, func(t *testing.T) storetest.Opener {
				url := postgrestest.Database(t)
				alter(t, url, tt.settings...)
				if tt.pooled {
					url = postgrestest.Pooled(t, url)
				}
				return func() (store.Store, error) { return postgres.Open(t.Context(), url+tt.parameters, postgres.Options{}) }
			})
		})
	}
}

// An entry of the audit log gets its ID when those before it are committed. So a program that reads
// the log after the last ID that it has seen misses none, though several servers write it.
func TestAuditIDsAreInTheOrderOfCommits(t *testing.T) {
	url := postgrestest.Database(t)
	s := open(t, url, postgres.Options{})
	admin := store.Actor{Name: "admin"}
	unlock := lock(t, url, "SELECT pg_advisory_xact_lock(1346720851, 2)") // as another server that adds an entry
	done := make(chan error)
	go func() {
		done <- s.AddAudit(t.Context(), store.AuditEntry{At: noon, Actor: "admin", Action: store.BanEnd, Target: "owner:ada"})
	}()
	go func() {
		_, err := s.CreateKey(t.Context(), store.NewKey{Digest: store.Digest{1}, LastFour: "abcd", Name: "n", Owner: "o", Plan: "p", Created: noon}, admin)
		done <- err
	}()
	must(t, waiting(t.Context(), url, 2))
	if query[bool](t, url, "SELECT is_called FROM audit_id_seq") {
		t.Error("an entry has got an ID before another server has committed one")
	}
	unlock()
	must(t, errors.Join(<-done, <-done))
}

// Each new idempotency key removes expired ones, and only those. It does not wait for a
// transaction that has locked one.
func TestExpiredIdempotencyKeysAreRemoved(t *testing.T) {
	url := postgrestest.Database(t)
	s := open(t, url, postgres.Options{})
	n := 0
	once := func(times int, at time.Time) {
		t.Helper()
		for range times {
			n++
			if _, _, err := s.CreatePetOnce(t.Context(), store.NewPet{Name: "Rex"}, store.IdempotencyKey{Owner: "ada", Key: fmt.Sprint(n), At: at}); err != nil {
				t.Fatalf("CreatePetOnce = %v", err)
			}
		}
	}
	count := func(want int) {
		t.Helper()
		if got := query[int](t, url, "SELECT count(*)::int FROM idempotency_keys"); got != want {
			t.Errorf("%d idempotency keys are stored, want %d", got, want)
		}
	}
	const moment = time.Microsecond
	once(6, noon)
	once(3, noon.Add(moment))
	count(9)
	unlock := lock(t, url, "SELECT FROM idempotency_keys WHERE key = '1' FOR UPDATE")
	once(3, noon.Add(store.IdempotencyLifetime))
	count(1 + 3 + 3)
	unlock()
	once(1, noon.Add(store.IdempotencyLifetime))
	count(3 + 4)
}

// More days are removed than one statement does, and those that another server is removing
// are left to it.
func TestManyOldDaysAreRemoved(t *testing.T) {
	url := postgrestest.Database(t)
	s := open(t, url, postgres.Options{})
	const old = 11_000
	postgrestest.Exec(t, url,
		fmt.Sprintf("INSERT INTO daily_use SELECT 'o' || n, '2026-01-01', 1, 1 FROM generate_series(1, %d) AS n", old),
		fmt.Sprintf("INSERT INTO deprecated_use_by_day SELECT '2026-01-01', 'getPet', 'o' || n, 1 FROM generate_series(1, %d) AS n", old),
		"INSERT INTO daily_use VALUES ('new', '2026-05-04', 1, 1)", "INSERT INTO deprecated_use_by_day VALUES ('2026-05-04', 'getPet', 'new', 1)")
	const count = "SELECT array[(SELECT count(*) FROM daily_use), (SELECT count(*) FROM deprecated_use_by_day)]::int[]"
	unlock := lock(t, url, "WITH d AS (SELECT FROM daily_use WHERE owner = 'o7' FOR UPDATE) SELECT FROM d, deprecated_use_by_day WHERE owner = 'o7' FOR UPDATE")
	for _, want := range []int{2, 1} {
		if err := s.PruneDailyUse(t.Context(), noon); err != nil {
			t.Errorf("PruneDailyUse = %v", err)
		}
		if got := query[[]int](t, url, count); got[0] != want || got[1] != want {
			t.Errorf("%v days are left, want %d of each kind", got, want)
		}
		if want == 2 {
			unlock()
		}
	}
}

// A page, a pet and a key read as few blocks of a large table as of a small one, wherever
// the page begins and however the statuses are spread.
func TestReadsTakeFewBlocks(t *testing.T) {
	url := postgrestest.Database(t)
	open(t, url, postgres.Options{})
	const n = 30_000
	// Mixed at first, then only sold ones, then a few that are available.
	postgrestest.Exec(t, url, fmt.Sprintf(`INSERT INTO pets (name, category_id, status)
		SELECT 'Rex', 1, CASE WHEN n > %d THEN 'available' WHEN n > %[1]d / 2 THEN 'sold' WHEN n %% 2 = 0 THEN 'pending' ELSE 'available' END
		FROM generate_series(1, %[1]d + 100) AS n`, n),
		`INSERT INTO keys SELECT 'key_' || n, decode(lpad(to_hex(n), 64, '0'), 'hex'), 'abcd', 'n', 'o', 'p', '{}', '{}', now()
		FROM generate_series(1, 10000) AS n`,
		"VACUUM ANALYZE pets", "ANALYZE keys")

	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	defer conn.Close(t.Context())
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		for _, after := range []int64{0, n / 2, n} {
			for text, args := range map[string]string{
				store.ListPetsText:                fmt.Sprintf("%d, 21", after),
				store.PostgreSQL.ListStatusText(): fmt.Sprintf("%d, 21, 'available'", after),
				store.PetText:                     fmt.Sprint(after),
			} {
				for _, statement := range []string{"SET plan_cache_mode = " + mode, "PREPARE p AS " + text} {
					_, err := conn.Exec(t.Context(), statement)
					must(t, err)
				}
				var explained []struct {
					Plan struct {
						Hit  int `json:"Shared Hit Blocks"`
						Read int `json:"Shared Read Blocks"`
					}
				}
				must(t, conn.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE p ("+args+")").Scan(&explained))
				if blocks := explained[0].Plan.Hit + explained[0].Plan.Read; blocks == 0 || blocks > 40 {
					t.Errorf("%s, %s (%s): %d blocks are read, want 1 to 40", mode, text, args, blocks)
				}
				if _, err := conn.Exec(t.Context(), "DEALLOCATE p"); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// A database that cannot store every name is refused when it is opened, rather than when a
// client sends such a name. Others have the name that was stored.
func TestEncodings(t *testing.T) {
	t.Parallel()
	server := postgrestest.Database(t)
	own := query[string](t, server, "SELECT current_database()")
	for encoding, works := range map[string]bool{"UTF8": true, "SQL_ASCII": true, "LATIN1": false} {
		name := own + "_" + strings.ToLower(encoding)
		postgrestest.Exec(t, server, "CREATE DATABASE "+name+" ENCODING '"+encoding+"' LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
		url := strings.Replace(server, own, name, 1)
		if !works {
			_, err := postgres.Open(t.Context(), url, postgres.Options{})
			checkText(t, err, "its encoding is "+encoding, "UTF8")
			_, _, err = postgres.Migrate(t.Context(), url)
			checkText(t, err, "its encoding is "+encoding, "UTF8")
			continue
		}
		alter(t, url, "client_encoding = 'LATIN1'", "standard_conforming_strings = off")
		const rex = `Réx\'"日本😀`
		_, err := open(t, url, postgres.Options{}).CreatePet(t.Context(), store.NewPet{Name: rex})
		must(t, err)
		if got := query[string](t, strings.Replace(url, "?", "?client_encoding=UTF8&", 1), "SELECT name FROM pets"); got != rex {
			t.Errorf("with the encoding %s the name is stored as %q, want %q", encoding, got, rex)
		}
	}
}

// Imports and upgrades take as long as they need, though others limit statements and pauses
// of this database. The lock of an upgrade is in a transaction that is idle meanwhile.
func TestLongWorkHasNoTimeLimit(t *testing.T) {
	testenv.Long(t, "waits for time limits")
	url := postgrestest.Database(t)
	s := open(t, url, postgres.Options{})
	alter(t, url, "statement_timeout = '400ms'", "idle_in_transaction_session_timeout = '400ms'")
	x := exportOf(10, func(i int64) error {
		time.Sleep(100 * time.Millisecond)
		return nil
	})
	if _, err := s.Import(t.Context(), x, importer, noon); err != nil {
		t.Errorf("Import = %v", err)
	}
	slow := with(t, map[string]string{"00003_slow.sql": `-- +goose Up
		SET LOCAL statement_timeout = 0;
		SELECT pg_sleep(1);
		SELECT 1 / count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database());`})
	if _, _, err := postgres.MigrateVersion(t.Context(), url, slow); err != nil {
		t.Errorf("an upgrade has lost its lock: %v", err)
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

// While the server behind PgBouncer is away, a start can succeed later, so that a server
// waits for it rather than ends.
func TestAPoolerWithoutItsServer(t *testing.T) {
	testenv.Long(t, "stops a server behind a pooler")
	t.Parallel()
	server := postgrestest.Start(t)
	url := postgrestest.Pooled(t, server.URL("postgres")) + "&default_query_exec_mode=exec"
	o := postgres.Options{Timeout: 300 * time.Millisecond}
	create(t, open(t, url, postgres.Options{}))
	server.Stop()
	eventually(t, "PgBouncer says that it cannot connect", func() error {
		_, err := postgres.Open(t.Context(), url, o)
		checkUnavailable(t, err)
		if !strings.Contains(err.Error(), "SQLSTATE 08P01") {
			return err
		}
		return nil
	})
	_, _, err := postgres.Migrate(t.Context(), url)
	checkUnavailable(t, err)
	server.Restart()
	eventually(t, "the server is back", func() error {
		s, err := postgres.Open(t.Context(), url, postgres.Options{})
		if err == nil {
			return s.Close()
		}
		checkUnavailable(t, err)
		return err
	})
	_, err = postgres.Open(t.Context(), url+"&search_path=public", postgres.Options{})
	checkText(t, err, "unsupported startup parameter: search_path")
}
