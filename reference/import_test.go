package main_test

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
)

// A server that moves from SQLite to PostgreSQL answers its clients as before.
func TestImport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := serve(t, dir)
	key, revoked := roomyKey(t, dir, "ann"), roomyKey(t, dir, "bob")
	petstore(t, dir, "keys", "revoke", keyID(t, dir, "--database=petstore.db", "bob"))
	for range 3 {
		mustAsk(t, 201, "POST", p.api+"/v1/pets", key, `{"name":"Rex","categoryId":1}`)
	}
	before := petIDs(t, p, key)
	count := used(t, p, key)
	must(t, p.stop())

	url := postgrestest.Database(t)
	pgDir, config := onPostgres(t, url)
	// A single server keeps its usage, too.
	writeFile(t, pgDir, "petstore.yaml", fmt.Sprintf("database: %q\nusage_file: %q\n", url, filepath.Join(dir, "petstore.db-usage")))
	file := filepath.Join(dir, "petstore.db")
	code, said := command(t, pgDir, "import", config, file)
	if want := "Imported " + file + " into postgres://"; code != 0 || !strings.Contains(said, want) || !strings.Contains(said, ": 3 pets, 3 keys.\n") {
		t.Fatalf("the import ended with %d and says %q, want 0 and %q with 3 pets and 3 keys", code, said, want)
	}
	if code, said := command(t, pgDir, "import", config, file); code != 1 || !strings.Contains(said, ": not empty: it has rows in pets, keys, audit") {
		t.Errorf("a second import ended with %d and says %q, want 1, because the database is not empty", code, said)
	}
	p = serve(t, pgDir, config)
	if strings.Contains(p.notice, "pet_live_") {
		t.Errorf("the server on PostgreSQL created a first key: %s", p.notice)
	}
	if n := used(t, p, key); n != count || n < 3 {
		t.Errorf("after the import %d requests are counted, want %d", n, count)
	}
	if ids := petIDs(t, p, key); fmt.Sprint(ids) != fmt.Sprint(before) {
		t.Errorf("after the import pets are %v, want %v", ids, before)
	}
	mustAsk(t, 401, "GET", p.api+"/v1/pets", revoked, "")
	var pet struct{ ID int64 }
	mustAsk(t, 201, "POST", p.api+"/v1/pets", key, `{"name":"Tom","categoryId":1}`).into(t, &pet)
	if pet.ID != 4 {
		t.Errorf("the next pet has the ID %d, want 4", pet.ID)
	}
	if out := petstore(t, pgDir, "audit", config); !strings.Contains(out, "database.import") || !strings.Contains(out, "key.revoke") {
		t.Errorf("the audit log has no import or no revocation: %s", out)
	}
}

// A waitingImport is an import that has copied the keys, and waits before it copies the
// audit log.
type waitingImport struct {
	*exec.Cmd
	holder                  *pgx.Conn // of the lock that it waits for
	config, file, temporary string
}

// startWaitingImport starts petstore import, with a command such as nohup before it.
func startWaitingImport(t *testing.T, before ...string) *waitingImport {
	dir := t.TempDir()
	roomyKey(t, dir, "ann")
	url := postgrestest.Database(t)
	pgDir, config := onPostgres(t, url)
	petstore(t, pgDir, "migrate", config)
	holder, err := pgx.Connect(t.Context(), url)
	must(t, err)
	t.Cleanup(func() { holder.Close(context.Background()) })
	for _, text := range []string{
		`CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NEW; END'`,
		`CREATE TRIGGER wait BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION wait()`,
		`SELECT pg_advisory_lock(7)`,
	} {
		_, err := holder.Exec(t.Context(), text)
		must(t, err)
	}
	w := &waitingImport{holder: holder, config: config, file: filepath.Join(dir, "petstore.db"), temporary: t.TempDir()}
	args := append(slices.Clip(before), "petstore", "import", config, w.file)
	w.Cmd = exec.CommandContext(t.Context(), args[0], args[1:]...)
	w.Dir, w.Env = pgDir, append(environment(), "TMPDIR="+w.temporary)
	must(t, w.Start())
	eventually(t, "the import waits in the middle", func() bool {
		var waits bool
		err := holder.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory')`).Scan(&waits)
		return err == nil && waits
	})
	return w
}

// goOn lets the import go on, if it still runs.
func (w *waitingImport) goOn(t *testing.T) {
	t.Helper()
	_, err := w.holder.Exec(t.Context(), "SELECT pg_advisory_unlock_all()")
	must(t, err)
}

// copies returns how many copies of the file the import has left.
func (w *waitingImport) copies(t *testing.T) int {
	left, err := filepath.Glob(filepath.Join(w.temporary, "*"))
	must(t, err)
	return len(left)
}

// An import that ends in the middle has imported nothing. If it was not killed, it has
// deleted its copy of the file.
func TestImportThatEndsInTheMiddle(t *testing.T) {
	testenv.Long(t, "imports many pets and ends them")
	for _, end := range []struct {
		signal syscall.Signal
		code   int
		copies int
	}{
		{syscall.SIGKILL, -1, 1},
		{syscall.SIGTERM, 1, 0},
		{syscall.SIGHUP, 1, 0},
	} {
		t.Run(end.signal.String(), func(t *testing.T) {
			t.Parallel()
			w := startWaitingImport(t)
			w.Process.Signal(end.signal)
			w.Wait()
			if code, copies := w.ProcessState.ExitCode(), w.copies(t); code != end.code || copies != end.copies {
				t.Errorf("the import ended with %d and left %d copies, want %d and %d", code, copies, end.code, end.copies)
			}
			w.goOn(t)
			if _, err := w.holder.Exec(t.Context(), "DROP TRIGGER wait ON audit"); err != nil { // waits until the import is rolled back
				t.Fatal(err)
			}
			if out := petstore(t, w.Dir, "keys", "list", w.config); strings.Contains(out, "ann") {
				t.Errorf("an import that ended in the middle has left keys: %s", out)
			}
			if code, said := command(t, w.Dir, "import", w.config, w.file); code != 0 || !strings.Contains(said, "0 pets, 1 key.") {
				t.Errorf("the next import ended with %d and says %q, want 0 and one key", code, said)
			}
		})
	}
}

// An import under nohup goes on when the terminal is closed.
func TestImportUnderNohup(t *testing.T) {
	testenv.Long(t, "holds an import in the middle")
	t.Parallel()
	w := startWaitingImport(t, "nohup")
	w.Process.Signal(syscall.SIGHUP)
	w.goOn(t)
	if err := w.Wait(); err != nil {
		t.Errorf("the import ended: %v", err)
	}
	if out := petstore(t, w.Dir, "keys", "list", w.config); !strings.Contains(out, "ann") {
		t.Errorf("the import has copied no key: %s", out)
	}
}

// Whatever is missing, the import says what it is.
func TestImportNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	roomyKey(t, dir, "ann")
	url := postgrestest.Database(t)
	none := filepath.Join(t.TempDir(), "none")
	for _, tt := range []struct {
		name, database, file string
		env                  string
		code                 int
		want                 string
	}{
		{"the file", url, "other.db", "", 1, "cannot import: file other.db does not exist"},
		{"the directory for temporary files", url, "petstore.db", "TMPDIR=" + none, 1, none},
		{"PostgreSQL at a socket", "postgres://petstore@/pets?host=" + none, "petstore.db", "", 1, none},
		{"a file, because there is a URL", url, url, "", 2, "got a URL"},
	} {
		cmd := exec.CommandContext(t.Context(), "petstore", "import", tt.file)
		cmd.Dir, cmd.Env = dir, append(environment(), "PETSTORE_DATABASE="+tt.database, tt.env)
		out, _ := cmd.CombinedOutput()
		said := string(out)
		if code := cmd.ProcessState.ExitCode(); code != tt.code || !strings.Contains(said, tt.want) || strings.Contains(said, postgrestest.Password) {
			t.Errorf("without %s the import ended with %d and says %q, want %d, %q and no password", tt.name, code, said, tt.code, tt.want)
		}
		if tt.file == "petstore.db" && strings.Contains(said, "petstore.db does not exist") {
			t.Errorf("without %s the import says that the file is missing: %q", tt.name, said)
		}
	}
}

// An import that is interrupted while PostgreSQL commits does not know the outcome, unless
// PostgreSQL still tells it, and says so.
func TestImportInterruptedWhileItCommits(t *testing.T) {
	testenv.Long(t, "imports many pets")
	t.Parallel()
	dir := t.TempDir()
	roomyKey(t, dir, "ann")
	server := postgrestest.Start(t)
	url := server.URL("postgres")
	pgDir, config := onPostgres(t, url)
	petstore(t, pgDir, "migrate", config)
	// A commit waits for a standby that does not exist.
	server.Exec("postgres", "ALTER SYSTEM SET synchronous_standby_names = 'absent'", "SELECT pg_reload_conf()")

	temp := t.TempDir()
	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "petstore", "import", config, filepath.Join(dir, "petstore.db"))
	cmd.Dir, cmd.Env, cmd.Stderr = pgDir, append(environment(), "TMPDIR="+temp), &said
	must(t, cmd.Start())
	observer, err := pgx.Connect(t.Context(), url)
	must(t, err)
	eventually(t, "the import waits for the commit", func() bool {
		var waits bool
		err := observer.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep')`).Scan(&waits)
		return err == nil && waits
	})
	cmd.Process.Signal(syscall.SIGTERM)
	server.Kill()
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(said.String(), "the outcome is unknown") {
		t.Errorf("the import ended with %d and says %q, want 1 and that the outcome is unknown", code, &said)
	}
	if left, _ := filepath.Glob(filepath.Join(temp, "*")); len(left) > 0 {
		t.Errorf("the import has left %v", left)
	}
}
