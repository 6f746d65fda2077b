//go:build unix

package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// While the server behind PgBouncer is away, a start can succeed later, so that a server
// waits for it rather than ends. PgBouncer has the same code for mistakes of the URL.
func TestAPoolerWithoutItsServer(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	url := postgrestest.Pooled(t, server.URL("postgres")) + "&default_query_exec_mode=exec"
	o := postgres.Options{Timeout: short}
	create(t, open(t, url, postgres.Options{}))
	server.Stop()
	eventually(t, "PgBouncer says that it cannot connect", func() error {
		_, err := postgres.Open(t.Context(), url, o)
		checkUnavailable(t, err)
		if !strings.Contains(err.Error(), "its pooler has no connection for the call") {
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
	if errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Open with a search_path = %v, which does not pass by itself, and wraps ErrUnavailable", err)
	}
}
