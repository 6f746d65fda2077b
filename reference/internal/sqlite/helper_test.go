package sqlite_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"database/sql"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

var must = testcheck.NoError

// programs are what the test binary does instead of testing when it is started
// by a test, with the program's name and a database in the environment.
var programs = map[string]func(ctx context.Context, path string) error{
	"change without end":  changeWithoutEnd,
	"create 25 pets":      createPets,
	"create a first key":  createFirstKey,
	"open":                openOnly,
	"back up":             backUp,
	"restore without end": restoreWithoutEnd,
}

const (
	programVar  = "SQLITE_TEST_PROGRAM"
	databaseVar = "SQLITE_TEST_DATABASE"
)

func TestMain(m *testing.M) {
	name := os.Getenv(programVar)
	if name == "" {
		os.Exit(m.Run())
	}
	if err := programs[name](context.Background(), os.Getenv(databaseVar)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// program returns the command that runs one of programs.
func program(t *testing.T, name, path string) *exec.Cmd {
	t.Helper()
	if programs[name] == nil {
		t.Fatalf("there is no program %q", name)
	}
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), programVar+"="+name, databaseVar+"="+path)
	return cmd
}

func withStore(ctx context.Context, path string, do func(*sqlite.Store) error) error {
	s, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}

func createPets(ctx context.Context, path string) error {
	return withStore(ctx, path, func(s *sqlite.Store) error {
		for range 25 {
			if _, err := s.CreatePet(ctx, store.NewPet{Name: "Rex"}); err != nil {
				return err
			}
		}
		return nil
	})
}

func createFirstKey(ctx context.Context, path string) error {
	return withStore(ctx, path, func(s *sqlite.Store) error {
		var d store.Digest
		rand.Read(d[:])
		_, err := s.CreateFirstKey(ctx, store.NewKey{
			Digest: d, LastFour: "abcd", Name: "first", Owner: "ada", Plan: "free", Created: time.Now(),
		}, store.Actor{Name: "test"})
		if errors.Is(err, store.ErrExists) {
			return nil
		}
		return err
	})
}

func openOnly(ctx context.Context, path string) error {
	return withStore(ctx, path, func(s *sqlite.Store) error { return s.Ping(ctx) })
}

func backUp(ctx context.Context, path string) error {
	_, err := sqlite.Backup(ctx, path, path+".backup")
	return err
}

// killAfter starts cmd, kills it when it has printed n lines, and returns all
// the whole lines it has printed.
func killAfter(t *testing.T, cmd *exec.Cmd, n int) []string {
	t.Helper()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	var lines []string
	r := bufio.NewReader(stdout)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			break
		}
		lines = append(lines, strings.TrimSuffix(line, "\n"))
		if len(lines) == n {
			cmd.Process.Kill()
		}
	}
	cmd.Wait()
	if len(lines) < n {
		t.Fatalf("the process ended after %d lines, want %d: %s", len(lines), n, stderr.String())
	}
	return lines
}

func tempDatabase(t *testing.T) string {
	return filepath.Join(t.TempDir(), "pets.db")
}

func open(t *testing.T, path string, o sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, o)
	must(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return s
}

// raw opens a file with the bare driver.
func raw(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	must(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

func execute(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, text := range statements {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

func checkIntegrity(t *testing.T, path string) {
	t.Helper()
	db := raw(t, path)
	defer db.Close()
	var result string
	if err := db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&result); err != nil || result != "ok" {
		t.Errorf("integrity_check = %q, %v, want ok", result, err)
	}
}

// filled makes a database with a row in each table, and returns its path and its key. All of
// them are copies of one.
func filled(t *testing.T) (string, store.Key) {
	t.Helper()
	filledOnce.Do(func() {
		path := tempDatabase(t)
		do(t, path, func(s *sqlite.Store) {
			filledKey = addKey(t, s, 1)
			_, _, err := s.CreatePetOnce(t.Context(), store.NewPet{Name: "Rex"}, once("k"))
			if err := errors.Join(err,
				s.AddDailyUse(t.Context(), store.DailyUse{Owner: "ada", Day: store.Day(now), Allowed: 1}),
				s.AddDeprecatedUse(t.Context(), store.DeprecatedUse{Operation: "getPet", Owner: "ada", Count: 1, Last: now}),
			); err != nil {
				t.Fatal(err)
			}
		})
		filledContent = readFile(t, path)
	})
	path := tempDatabase(t)
	writeFile(t, path, filledContent)
	return path, filledKey
}

var (
	filledOnce    sync.Once
	filledContent []byte
	filledKey     store.Key
)

func newKey(digest byte) store.NewKey {
	return store.NewKey{Digest: store.Digest{digest}, LastFour: "abcd", Name: "n", Owner: "ada", Plan: "free", Created: now}
}

// checkMode checks that only its owner can read a file: it tells who has keys.
func checkMode(t *testing.T, path string) {
	t.Helper()
	if info, err := os.Stat(path); runtime.GOOS != "windows" && (err != nil || info.Mode().Perm() != 0o600) {
		t.Errorf("%s has mode %v (%v), want 0600", path, info.Mode(), err)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	must(t, err)
	return content
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	must(t, os.WriteFile(path, content, 0o600))
}
