package main_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
)

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
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	observer, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
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
