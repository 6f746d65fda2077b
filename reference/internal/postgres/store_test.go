//go:build unix

package postgres_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
	"github.com/animalstore/gatehouse/reference/internal/store/storetest"
)

func TestConformance(t *testing.T) {
	for _, tt := range []struct {
		name, parameters string
		pooled, long     bool
	}{
		{name: "defaults"},
		// Of the user or the database, which the transactions of this package override.
		{name: "strict isolation", parameters: "&default_transaction_isolation=serializable", long: true},
		{name: "no prepared statements", parameters: "&default_query_exec_mode=exec", long: true},
		{name: "one connection", parameters: "&pool_max_conns=1", long: true},
		// Through PgBouncer in transaction mode, each transaction can have another connection.
		{name: "a pooler", parameters: "&default_query_exec_mode=exec", pooled: true, long: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.long {
				testenv.Long(t, "runs the suite once more")
			}
			storetest.Run(t, func(t *testing.T) storetest.Opener[store.Store] {
				url := postgrestest.Database(t)
				if tt.pooled {
					url = postgrestest.Pooled(t, url)
				}
				return func() (store.Store, error) { return postgres.Open(t.Context(), url+tt.parameters, postgres.Options{}) }
			})
		})
	}
}

// A program that reads the audit log after the last ID that it has seen misses no entry,
// though several servers write it.
func TestAuditIDsAreInTheOrderOfCommits(t *testing.T) {
	url := postgrestest.Database(t)
	var writers sync.WaitGroup
	const servers, callers, each = 2, 4, 10
	for server := range servers {
		s := open(t, url, postgres.Options{})
		for caller := range callers {
			writers.Go(func() {
				for n := range each {
					err := s.AddAudit(t.Context(), store.AuditEntry{At: noon, Actor: "admin", Action: store.BanEnd, Target: "owner:ada"})
					if n%2 == 0 {
						d := store.Digest{1, byte(server), byte(caller), byte(n)}
						_, err = s.CreateKey(t.Context(), store.NewKey{Digest: d, LastFour: "abcd", Name: "n", Owner: "o", Plan: "p", Created: noon}, store.Actor{Name: "admin"})
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	done := make(chan struct{})
	go func() {
		writers.Wait()
		close(done)
	}()
	reader := open(t, url, postgres.Options{})
	seen, last := map[int64]bool{}, int64(0)
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		entries, err := reader.ListAudit(t.Context(), store.AuditQuery{Limit: store.MaxAudit})
		must(t, err)
		before := last
		for _, e := range entries {
			if !seen[e.ID] && e.ID <= before {
				t.Errorf("entry %d appears after entry %d", e.ID, before)
			}
			seen[e.ID], last = true, max(last, e.ID)
		}
	}
	if want := servers * callers * each * 3 / 2; len(seen) != want {
		t.Errorf("the audit log has %d entries, want %d", len(seen), want)
	}
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

// The settings of a user or a database, which others chose for other programs, do not
// change what is stored and read.
func TestSettingsOfTheDatabaseDoNotMatter(t *testing.T) {
	for name, settings := range map[string][]string{
		"of western Europe": {
			"client_encoding = 'LATIN1'", "DateStyle = 'German'", "bytea_output = 'escape'", "standard_conforming_strings = off",
			"backslash_quote = off", "array_nulls = off", "IntervalStyle = 'sql_standard'", "transform_null_equals = on",
		},
		"of India": {
			"client_encoding = 'SQL_ASCII'", "DateStyle = 'SQL, MDY'", "TimeZone = 'Asia/Kolkata'", "plan_cache_mode = 'force_generic_plan'",
		},
	} {
		url := postgrestest.Database(t)
		for _, setting := range settings {
			alter(t, url, "SET "+setting)
		}
		const exec = "&default_query_exec_mode=exec"
		t.Run(name+" directly", func(t *testing.T) { checkSession(t, url, url) })
		t.Run(name+" with exec", func(t *testing.T) { checkSession(t, url, url+exec) })
		t.Run(name+" through a pooler", func(t *testing.T) { checkSession(t, url, postgrestest.Pooled(t, url)+exec) })
	}
}

// checkSession stores and reads back all kinds of values through a URL, and compares a name
// with what the database has.
func checkSession(t *testing.T, direct, url string) {
	s := open(t, url, postgres.Options{})
	const name = `Réx\'"日本😀`
	k := store.IdempotencyKey{Owner: name, Key: t.Name(), Fingerprint: [32]byte{0, '\\', 0xff}, At: noon}
	pet, _, err := s.CreatePetOnce(t.Context(), store.NewPet{Name: name}, k)
	must(t, err)
	again, replayed, err := s.CreatePetOnce(t.Context(), store.NewPet{Name: name}, k)
	if again != pet || !replayed || err != nil {
		t.Errorf("CreatePetOnce again = %v, %t, %v, want %v", again, replayed, err, pet)
	}
	if got, err := s.Pet(t.Context(), pet.ID); got != pet || err != nil {
		t.Errorf("Pet = %v, %v, want %v", got, err, pet)
	}
	utf8 := strings.Replace(direct, "?", "?client_encoding=UTF8&", 1)
	if got := query[string](t, utf8, "SELECT name FROM pets WHERE id = $1", pet.ID); got != name {
		t.Errorf("the name is stored as %q, want %q", got, name)
	}
	n := store.NewKey{
		Digest: store.Digest{byte(pet.ID), 0, '\\', 0xff}, LastFour: `a\'"`, Name: name, Owner: name, Plan: "p",
		Quotas: []string{`1/s,"{}\`, "NULL"}, Created: noon.Add(1001), Expires: noon.Add(1e9),
	}
	key, err := s.CreateKey(t.Context(), n, store.Actor{Name: name})
	must(t, err)
	got, err := s.KeyByDigest(t.Context(), n.Digest)
	if diff := cmp.Diff(key, got); diff != "" || err != nil {
		t.Errorf("KeyByDigest = %v (-want +got):\n%s", err, diff)
	}
	entries, err := s.ListAudit(t.Context(), store.AuditQuery{Limit: 1})
	if err != nil || len(entries) != 1 || !entries[0].At.Equal(key.Created) || entries[0].Actor != name {
		t.Errorf("ListAudit = %v, %v", entries, err)
	}
	use := store.DeprecatedUse{Operation: t.Name(), Owner: name, Count: 1, Last: noon, Recent: 1}
	day := store.DailyUse{Owner: t.Name(), Day: store.Day(noon), Allowed: 1, Denied: 2}
	if err := s.AddDeprecatedUse(t.Context(), use); err != nil {
		t.Errorf("AddDeprecatedUse = %v", err)
	}
	if err := s.AddDailyUse(t.Context(), day); err != nil {
		t.Errorf("AddDailyUse = %v", err)
	}
	uses, err := s.ListDeprecatedUse(t.Context(), noon)
	if err != nil || !contains(uses, use) {
		t.Errorf("ListDeprecatedUse = %v, %v, want one that is %v", uses, err, use)
	}
	days, err := s.ListDailyUse(t.Context(), t.Name(), noon)
	if diff := cmp.Diff([]store.DailyUse{day}, days); diff != "" || err != nil {
		t.Errorf("ListDailyUse = %v (-want +got):\n%s", err, diff)
	}
}

func contains(all []store.DeprecatedUse, want store.DeprecatedUse) bool {
	for _, u := range all {
		if cmp.Equal(u, want) {
			return true
		}
	}
	return false
}

// A database that cannot store every name is refused when it is opened, rather than when a
// client sends such a name.
func TestEncodings(t *testing.T) {
	t.Parallel()
	server := postgrestest.Database(t)
	own := query[string](t, server, "SELECT current_database()")
	encodings := map[string]bool{"SQL_ASCII": true, "LATIN1": false}
	if testenv.IsLong() {
		maps.Copy(encodings, map[string]bool{"UTF8": true, "WIN1252": false, "EUC_JP": false})
	}
	for encoding, works := range encodings {
		name := own + "_" + strings.ToLower(encoding)
		postgrestest.Exec(t, server, "CREATE DATABASE "+name+" ENCODING '"+encoding+"' LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
		url := strings.Replace(server, own, name, 1)
		if works {
			checkSession(t, url, url)
			continue
		}
		_, err := postgres.Open(t.Context(), url, postgres.Options{})
		checkText(t, err, "its encoding is "+encoding, "UTF8")
		_, _, err = postgres.Migrate(t.Context(), url)
		checkText(t, err, "its encoding is "+encoding, "UTF8")
	}
}

// Through PgBouncer in transaction mode, the statement that one connection has prepared is
// not known to the next.
func TestAPoolerWithPreparedStatements(t *testing.T) {
	url := postgrestest.Pooled(t, postgrestest.Database(t))
	for range 20 {
		s, err := postgres.Open(t.Context(), url, postgres.Options{})
		if err == nil {
			if _, err = s.Pet(t.Context(), 1); errors.Is(err, store.ErrNotFound) {
				err = nil
			}
			s.Close()
		}
		if err != nil {
			checkText(t, err, "add default_query_exec_mode=exec to the URL")
			return
		}
	}
	t.Skip("skipped: this PgBouncer prepares statements for its clients")
}

// Imports and upgrades take as long as they need, though others limit statements and pauses
// of this database. The lock of an upgrade is in a transaction that is idle meanwhile.
func TestLongWorkHasNoTimeLimit(t *testing.T) {
	testenv.Long(t, "waits for time limits")
	url := postgrestest.Database(t)
	s := open(t, url, postgres.Options{})
	alter(t, url, "SET statement_timeout = '400ms'", "SET idle_in_transaction_session_timeout = '400ms'")
	x := exportOf(10, func(i int64) error {
		time.Sleep(100 * time.Millisecond)
		return nil
	})
	if _, err := s.Import(t.Context(), x, importer, noon); err != nil {
		t.Errorf("Import = %v", err)
	}
	slow := with(t, map[string]string{"00002_slow.sql": `-- +goose Up
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
