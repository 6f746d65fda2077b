package server

import (
	"database/sql"
	"io"
	"log/slog"
	"strings"
	"testing"
)

// A newer server that is started beside the one in use must not upgrade its database.
func TestARefusedServerUpgradesNothing(t *testing.T) {
	c := testSettings(t)
	o := Options{Logger: slog.New(slog.DiscardHandler), Notice: io.Discard}
	s, err := open(t.Context(), c, o, new(startup))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	db, err := sql.Open("sqlite", c.Database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	version := func() (v int64) {
		t.Helper()
		if err := db.QueryRow("SELECT max(version_id) FROM goose_db_version").Scan(&v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	latest := version()
	// As if an older server had made the file.
	for _, statement := range []string{
		"ALTER TABLE keys DROP COLUMN limits",
		"DROP INDEX pets_by_status",
		"CREATE INDEX pets_by_status ON pets (status)",
		"DELETE FROM goose_db_version WHERE version_id >= 7",
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	_, err = open(t.Context(), c, o, new(startup))
	if err == nil || !strings.Contains(err.Error(), "another petstore serves") {
		t.Errorf("open beside a running server = %v, want that another one serves the database", err)
	}
	if got := version(); got != 6 {
		t.Errorf("the schema is %d after the refusal, want 6; %d is the newest", got, latest)
	}
}
