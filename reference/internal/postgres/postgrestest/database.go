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

// Database returns the URL of a fresh database on a server that all tests of this binary
// share. The database is dropped when the test ends.
func Database(t testing.TB) string {
	t.Helper()
	require(t)
	s, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	name := "test" + strconv.Itoa(os.Getpid()) + "_" + strconv.FormatInt(count.Add(1), 10)
	Exec(t, s.URL("postgres"), "CREATE DATABASE "+name)
	t.Cleanup(func() {
		Exec(t, s.URL("postgres"), "DROP DATABASE "+name+" WITH (FORCE)")
	})
	return s.URL(name)
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
