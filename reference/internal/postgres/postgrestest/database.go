//go:build unix

package postgrestest

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// shared starts the server that the tests of this binary share.
var shared = sync.OnceValues(func() (*Server, error) {
	data, err := newData()
	if err != nil {
		return nil, err
	}
	return start(nil, data, []string{"max_connections=200"})
})

// Database returns the URL of an empty database on a server that all tests of this binary
// share. When the test ends, the database is emptied for another test: to create and to
// drop one takes many times as long.
func Database(t testing.TB) string {
	t.Helper()
	require(t)
	s, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	name, ok := empty.take()
	if !ok {
		name = "test" + strconv.Itoa(os.Getpid()) + "_" + strconv.FormatInt(count.Add(1), 10)
		Exec(t, s.URL("postgres"), "CREATE DATABASE "+name)
	}
	t.Cleanup(func() {
		Exec(t, s.URL("postgres"),
			"ALTER DATABASE "+name+" RESET ALL",
			"SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE datname = '"+name+"'")
		Exec(t, s.URL(name), dropSchemas, "CREATE SCHEMA public", "GRANT USAGE ON SCHEMA public TO PUBLIC")
		empty.add(name)
	})
	return s.URL(name)
}

// dropSchemas drops all schemas except those of PostgreSQL itself.
const dropSchemas = `DO $$ DECLARE name text; BEGIN
	FOR name IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' LOOP
		EXECUTE format('DROP SCHEMA %I CASCADE', name);
	END LOOP;
END $$`

// empty are the databases of the shared server that no test uses now.
var empty databases

type databases struct {
	mu    sync.Mutex
	names []string
}

func (d *databases) add(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names = append(d.names, name)
}

// take returns a database, if there is one.
func (d *databases) take() (name string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.names) == 0 {
		return "", false
	}
	last := len(d.names) - 1
	name, d.names = d.names[last], d.names[:last]
	return name, true
}

// Exec runs statements in the database with a URL.
func Exec(t testing.TB, url string, statements ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := execute(ctx, url, statements); err != nil {
		t.Fatal(err)
	}
}

func execute(ctx context.Context, url string, statements []string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, text := range statements {
		if _, err := conn.Exec(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}
