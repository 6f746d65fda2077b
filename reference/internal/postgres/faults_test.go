//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

func TestServersThatEndUnderWrites(t *testing.T) {
	for name, end := range map[string]func(*postgrestest.Server){
		"killed":  (*postgrestest.Server).Kill,
		"stopped": (*postgrestest.Server).Stop,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "stopped" {
				testenv.Long(t, "restarts a server again and again")
			}
			server := postgrestest.Start(t)
			w := startWriters(t, open(t, server.URL("postgres"), postgres.Options{}), 24)
			for range 2 {
				w.more(200)
				end(server)
				server.Restart()
			}
			// A single connection that is ended costs nothing but itself.
			for range 3 {
				w.more(50)
				server.Exec("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'petstore'")
			}
			w.more(200)
			w.check()
		})
	}
}

// With a synchronous standby, no acknowledged pet is lost when the primary is, or hangs, as
// if its machine has lost its network.
func TestFailoverUnderWrites(t *testing.T) {
	testenv.Long(t, "promotes a standby")
	for name, end := range map[string]func(*postgrestest.Server){
		"killed": (*postgrestest.Server).Kill,
		"frozen": (*postgrestest.Server).Freeze,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary := postgrestest.Start(t)
			primary.Exec("postgres", "CREATE DATABASE pets")
			standby := primary.StartStandby()
			primary.Synchronous()
			url := strings.Replace(primary.URL("pets"), primary.Addr, primary.Addr+","+standby.Addr, 1)
			s := openSoon(t, url+"&connect_timeout=1", postgres.Options{Timeout: 2 * time.Second})
			w := startWriters(t, s, 16)
			w.more(100)
			follower := openSoon(t, standby.URL("pets"), postgres.Options{})
			checkReadOnly(t, follower)
			end(primary)
			checkUnavailable(t, s.Ping(t.Context()))
			standby.Promote()
			w.more(100)
			w.check()
			if err := s.Ping(t.Context()); err != nil {
				t.Errorf("Ping after the failover = %v", err)
			}
		})
	}
}

// checkReadOnly checks that a store whose server is read-only can be read, and is not ready.
func checkReadOnly(t *testing.T, s *postgres.Store) {
	t.Helper()
	checkUnavailable(t, s.Ping(t.Context()), "read-only")
	_, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
	checkUnavailable(t, err, "read-only")
	if err != nil && strings.Contains(err.Error(), "unknown") {
		t.Errorf("the outcome of a write on a server that is read-only is %v", err)
	}
	if _, _, err := s.ListPets(t.Context(), store.ListQuery{Limit: 1}); err != nil {
		t.Errorf("ListPets on a server that is read-only = %v", err)
	}
}

// A primary that becomes read-only under the connections, as some services do when a disk
// is full, is read further and written again when it can be.
func TestReadOnlyForAWhile(t *testing.T) {
	url := postgrestest.Database(t)
	s := open(t, url, postgres.Options{})
	create(t, s)
	database := query[string](t, url, "SELECT current_database()")
	// A session that has not noticed yet would still answer.
	end := "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE application_name = 'petstore' AND datname = current_database()"
	postgrestest.Exec(t, url, "ALTER DATABASE "+database+" SET default_transaction_read_only = on", end)
	checkReadOnly(t, s)
	// The connections that found it so are replaced, without a restart.
	postgrestest.Exec(t, strings.Replace(url, "?", "?default_transaction_read_only=off&", 1), "ALTER DATABASE "+database+" RESET default_transaction_read_only")
	createSoon(t, s)
}

func TestAllConnectionsInUse(t *testing.T) {
	url := postgrestest.Database(t)
	s := open(t, url+"&pool_max_conns=1", postgres.Options{})
	unlock := lock(t, url, "LOCK TABLE pets IN ACCESS EXCLUSIVE MODE")
	done := make(chan error)
	go func() {
		_, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
		done <- err
	}()
	must(t, waiting(t.Context(), url, 1))
	ctx, cancel := context.WithTimeout(t.Context(), 1) // ends while it waits, or before
	defer cancel()
	_, err := s.Pet(ctx, 1)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Pet = %v, want an error that wraps DeadlineExceeded", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	go cancel()
	if _, err := s.Pet(canceled, 1); !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Pet = %v, want an error that wraps Canceled alone", err)
	}
	unlock()
	must(t, <-done)
}

// calls are calls of a store, of each kind, one of them for a pet that there is.
func calls(s *postgres.Store, pet int64) map[string]func(context.Context) error {
	rex := store.NewPet{Name: "Rex"}
	once := store.IdempotencyKey{Owner: "ada", Key: "1", At: noon}
	return map[string]func(context.Context) error{
		"Pet":       func(ctx context.Context) error { _, err := s.Pet(ctx, pet); return err },
		"ListPets":  func(ctx context.Context) error { _, _, err := s.ListPets(ctx, store.ListQuery{Limit: 1}); return err },
		"ListKeys":  func(ctx context.Context) error { _, err := s.ListKeys(ctx); return err },
		"CreatePet": func(ctx context.Context) error { _, err := s.CreatePet(ctx, rex); return err },
		"CreatePetOnce": func(ctx context.Context) error {
			_, _, err := s.CreatePetOnce(ctx, rex, once)
			return err
		},
	}
}

// A connection that is reset anywhere in a call: a pet that is acknowledged is stored, a
// pet that is refused is not, and none is stored twice.
func TestConnectionsCutInCalls(t *testing.T) {
	url := postgrestest.Database(t)
	p := through(t, url)
	s := open(t, p.url+"&pool_max_conns=1", postgres.Options{})
	beside, err := pgx.Connect(t.Context(), url)
	must(t, err)
	defer beside.Close(context.Background())
	step := 29 // bytes between two cuts
	if testenv.IsLong() {
		step = 5
	}
	number := int64(0)
	for name, create := range map[string]func(store.NewPet, store.IdempotencyKey) (store.Pet, error){
		"CreatePet": func(n store.NewPet, _ store.IdempotencyKey) (store.Pet, error) {
			return s.CreatePet(context.Background(), n)
		},
		"CreatePetOnce": func(n store.NewPet, k store.IdempotencyKey) (store.Pet, error) {
			pet, _, err := s.CreatePetOnce(context.Background(), n, k)
			return pet, err
		},
	} {
		call := func() (int64, store.Pet, error) {
			number++
			pet, err := create(store.NewPet{Name: "Rex", CategoryID: number}, store.IdempotencyKey{Owner: "ada", Key: fmt.Sprint(number), At: noon})
			return number, pet, err
		}
		for _, way := range []direction{toServer, toClient} {
			counts := map[string]int{}
			for cut, passed := 0, false; !passed; cut += step {
				eventually(t, "a connection is ready", func() error {
					_, _, err := call()
					return err
				})
				p.cut(way, cut)
				n, pet, err := call()
				passed = p.disarm()
				var ids []int64
				must(t, beside.QueryRow(t.Context(), "SELECT coalesce(array_agg(id), '{}') FROM pets WHERE category_id = $1", n).Scan(&ids))
				switch {
				case err == nil && (len(ids) != 1 || ids[0] != pet.ID):
					t.Errorf("%s, cut after %d bytes %s: pet %d is acknowledged and %v are stored", name, cut, way, pet.ID, ids)
				case err != nil && !strings.Contains(err.Error(), "the outcome is unknown") && len(ids) > 0:
					t.Errorf("%s, cut after %d bytes %s: %v are stored, and the error is %v", name, cut, way, ids, err)
				case len(ids) > 1:
					t.Errorf("%s, cut after %d bytes %s: %v are stored", name, cut, way, ids)
				case name == "CreatePet" && err == nil && !passed:
					t.Errorf("%s, cut after %d bytes %s: it is acknowledged without the whole answer", name, cut, way)
				}
				if err != nil {
					checkUnavailable(t, err)
				}
				counts[fmt.Sprintf("error=%v stored=%d", err != nil, len(ids))]++
			}
			t.Log(name, way, counts)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	url := postgrestest.Database(t)
	for name, tt := range map[string]struct {
		url  string
		want []string
	}{
		"another scheme":   {"mysql://petstore:" + postgrestest.Password + "@localhost/pets", []string{"must begin with postgres://"}},
		"a bad port":       {"postgres://petstore:" + postgrestest.Password + "@localhost:port/pets", []string{"the URL of the PostgreSQL database"}},
		"a bad parameter":  {url + "&pool_max_conns=many", []string{"pool_max_conns"}},
		"a wrong password": {strings.Replace(url, ":"+postgrestest.Password, ":"+postgrestest.Password+"x", 1), []string{"password authentication failed"}},
		"no database":      {strings.Replace(url, "?", "x?", 1), []string{"does not exist"}},
		"no such setting":  {url + "&petstore_setting=1", []string{"unrecognized configuration parameter"}},
	} {
		_, err := postgres.Open(t.Context(), tt.url, postgres.Options{})
		checkText(t, err, tt.want...)
		if errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: Open = %v, which does not pass by itself, and wraps ErrUnavailable", name, err)
		}
	}
	_, err := postgres.Open(t.Context(), "postgres://petstore:"+postgrestest.Password+"@127.0.0.1:1,127.0.0.1:2/pets", postgres.Options{})
	checkUnavailable(t, err, "cannot connect", "127.0.0.1:1", "127.0.0.1:2")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := postgres.Open(ctx, url, postgres.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Open with a canceled context = %v, want an error that wraps Canceled", err)
	}
}

// If all connections have ended, as after a restart of the server, at most one write meets that.
func TestConnectionsThatHaveEnded(t *testing.T) {
	const conns = 8
	url := postgrestest.Database(t)
	s := open(t, fmt.Sprintf("%s&pool_max_conns=%d", url, conns), postgres.Options{})
	must(t, s.Connect(t.Context(), conns))
	postgrestest.Exec(t, url, "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE application_name = 'petstore' AND datname = current_database()")
	failed := 0
	for range conns {
		if _, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"}); err != nil {
			checkUnavailable(t, err, "the outcome is unknown")
			failed++
		}
	}
	if failed > 1 {
		t.Errorf("%d writes failed with %d connections that have ended, want at most 1", failed, conns)
	}
}

// stop stops the processes of all connections of a store, but not their server, until the
// test ends.
func stop(t *testing.T, url string) {
	t.Helper()
	for _, pid := range query[[]int](t, url, "SELECT array_agg(pid) FROM pg_stat_activity WHERE application_name = 'petstore' AND datname = current_database()") {
		must(t, syscall.Kill(pid, syscall.SIGSTOP))
		t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	}
}

// If connections hang, as after the loss of a network, the first calls find that out, and not
// one for each connection. They do not count as connections of the pool for long.
func TestConnectionsThatHang(t *testing.T) {
	testenv.Long(t, "waits for timeouts")
	const conns = 4
	for name, together := range map[string]int{"in calls": conns, "while they are idle": 1} {
		t.Run(name, func(t *testing.T) {
			url := postgrestest.Database(t)
			s := openSoon(t, fmt.Sprintf("%s&pool_max_conns=%d", url, conns), postgres.Options{Timeout: time.Second})
			eventually(t, "there are connections", func() error { return s.Connect(t.Context(), conns) })
			stop(t, url)
			if together == 1 {
				time.Sleep(1100 * time.Millisecond) // then the pool checks a connection before a call gets it
			}
			var calls sync.WaitGroup
			for range together {
				calls.Go(func() { checkUnavailable(t, s.Ping(context.Background())) })
			}
			calls.Wait()
			var err error
			for range 3 { // on a busy machine the first may take too long; pgx would keep connections for 15 seconds
				if err = s.Ping(t.Context()); err == nil {
					return
				}
			}
			t.Errorf("connections that hang are not replaced: %v", err)
		})
	}
}

// begin runs a statement in a transaction that ends with the function that it returns.
func begin(t *testing.T, url, text string) (end func(how string)) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	_, err = conn.Exec(t.Context(), "BEGIN; "+text)
	must(t, err)
	return func(how string) {
		t.Helper()
		if _, err := conn.Exec(context.Background(), how); err != nil {
			t.Error(err)
		}
		conn.Close(context.Background())
	}
}

// lock is begin for a transaction that is undone.
func lock(t *testing.T, url, text string) (unlock func()) {
	t.Helper()
	end := begin(t, url, text)
	return func() { end("ROLLBACK") }
}

// A call that has begun finishes though its client hangs up, and keeps its connection.
func TestAClientThatHangsUp(t *testing.T) {
	url := postgrestest.Database(t)
	s := open(t, url+"&pool_max_conns=1", postgres.Options{Timeout: time.Minute})
	pet := create(t, s)
	backend := func() (pid int) {
		eventually(t, "the connections of Open are closed", func() error {
			pids := query[[]int](t, url, "SELECT array_agg(pid) FROM pg_stat_activity WHERE application_name = 'petstore' AND datname = current_database()")
			if len(pids) != 1 {
				return fmt.Errorf("there are %d", len(pids))
			}
			pid = pids[0]
			return nil
		})
		return pid
	}
	before := backend()
	for name, call := range calls(s, pet.ID) {
		unlock := lock(t, url, "LOCK TABLE pets, keys IN ACCESS EXCLUSIVE MODE")
		ctx, hangUp := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- call(ctx) }()
		if err := waiting(t.Context(), url, 1); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		hangUp()
		time.Sleep(20 * time.Millisecond) // for a call that would notice
		unlock()
		if err := <-done; err != nil {
			t.Errorf("%s of a client that hangs up = %v", name, err)
		}
	}
	if after := backend(); after != before {
		t.Errorf("the connection is that of process %d, want %d as before", after, before)
	}
	if n := query[int](t, url, "SELECT count(*)::int FROM pets"); n != 3 {
		t.Errorf("%d pets are stored, want 3", n)
	}
}

// A read that has begun ends at the deadline of its context; a write finishes.
func TestADeadlineOfTheCaller(t *testing.T) {
	testenv.Long(t, "waits for a deadline")
	url := postgrestest.Database(t)
	s := open(t, url, postgres.Options{Timeout: time.Minute})
	pet := create(t, s)
	unlock := lock(t, url, "LOCK TABLE pets IN ACCESS EXCLUSIVE MODE")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // in which the calls begin
	defer cancel()
	done := make(chan error)
	go func() {
		_, err := s.CreatePet(ctx, store.NewPet{Name: "Rex"})
		done <- err
	}()
	if err := waiting(t.Context(), url, 1); err != nil {
		t.Error(err)
	}
	if _, err := s.Pet(ctx, pet.ID); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Pet = %v, want an error that wraps DeadlineExceeded", err)
	}
	<-ctx.Done()
	unlock()
	if err := <-done; err != nil {
		t.Errorf("CreatePet = %v, want nil after the deadline", err)
	}
}

// A statement that a connection has prepared does not survive that a column changes its type.
// A call that meets this is repeated, also if all connections of the pool have prepared it.
func TestAColumnThatChangesItsType(t *testing.T) {
	const conns = 4
	url := postgrestest.Database(t)
	s := open(t, fmt.Sprintf("%s&pool_max_conns=%d", url, conns), postgres.Options{})
	pet := create(t, s)
	together := func(call func() error) {
		t.Helper()
		unlock := lock(t, url, "LOCK TABLE pets, keys IN ACCESS EXCLUSIVE MODE")
		var calls sync.WaitGroup
		for range conns {
			calls.Go(func() {
				if err := call(); err != nil {
					t.Error(err)
				}
			})
		}
		if err := waiting(t.Context(), url, conns); err != nil {
			t.Error(err)
		}
		unlock()
		calls.Wait()
	}
	for name, call := range calls(s, pet.ID) {
		for _, kind := range []string{"integer", "bigint"} {
			together(func() error { return call(t.Context()) })
			postgrestest.Exec(t, url, "ALTER TABLE pets ALTER COLUMN category_id TYPE "+kind)
			for range conns {
				if err := call(t.Context()); err != nil {
					t.Errorf("%s after the change to %s = %v", name, kind, err)
				}
			}
		}
	}
}

// A call that a deadlock has ended is repeated, but not for ever.
func TestADeadlockIsRepeated(t *testing.T) {
	url := postgrestest.Database(t)
	s := open(t, url, postgres.Options{})
	key, err := s.CreateKey(t.Context(), store.NewKey{Digest: store.Digest{1}, LastFour: "abcd", Name: "n", Owner: "o", Plan: "p", Created: noon}, store.Actor{Name: "admin"})
	must(t, err)
	postgrestest.Exec(t, url, `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF nextval('attempts') = 1 THEN RAISE EXCEPTION 'x' USING ERRCODE = '40P01'; END IF;
		RETURN NEW;
	END $$`, "CREATE SEQUENCE attempts", "CREATE TRIGGER fail BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION fail()")
	if _, err := s.RevokeKey(t.Context(), key.ID, noon, store.Actor{Name: "admin"}); err != nil {
		t.Errorf("RevokeKey = %v", err)
	}
	if n := query[int](t, url, "SELECT count(*)::int FROM audit WHERE action = 'key.revoke'"); n != 1 {
		t.Errorf("the audit log has %d entries of the revocation, want 1", n)
	}
	postgrestest.Exec(t, url, "CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40P01'; END $$")
	err = s.AddAudit(t.Context(), store.AuditEntry{At: noon, Actor: "admin", Action: store.BanEnd, Target: "owner:ada"})
	checkUnavailable(t, err, "SQLSTATE 40P01")
}

// What the server says is what an operator reads.
func TestErrorsOfTheServer(t *testing.T) {
	url := postgrestest.Database(t)
	s := open(t, url, postgres.Options{})
	for state, tt := range map[string]struct {
		permanent bool
		want      string
	}{
		"53100": {false, "SQLSTATE 53100"},
		"53300": {false, "lower pool_max_conns, or raise max_connections"},
		"58030": {false, "SQLSTATE 58030"},
		"57014": {false, "SQLSTATE 57014"},
		"55P03": {false, "SQLSTATE 55P03"},
		"40001": {false, "SQLSTATE 40001"},
		"25006": {false, "SQLSTATE 25006"},
		// From a pooler that gives the statements of a session to several connections.
		"26000": {true, "add default_query_exec_mode=exec to the URL"},
		"42P05": {true, "add default_query_exec_mode=exec to the URL"},
		"42501": {true, "lacks rights on its tables"},
		"42P01": {true, "check the search_path"},
		"42703": {true, "check the search_path"},
		"XX001": {true, "SQLSTATE XX001"},
	} {
		postgrestest.Exec(t, url, fmt.Sprintf("CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '%s'; END $$", state),
			"CREATE OR REPLACE TRIGGER fail BEFORE INSERT ON pets FOR EACH ROW EXECUTE FUNCTION fail()")
		_, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
		if tt.permanent {
			checkText(t, err, tt.want)
			if errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%s: CreatePet = %v, which does not pass by itself, and wraps ErrUnavailable", state, err)
			}
		} else {
			checkUnavailable(t, err, tt.want)
		}
	}
}
