//go:build unix

package postgres_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// A call that a deadlock has ended is repeated, but not for ever.
func TestADeadlockIsRepeated(t *testing.T) {
	url := postgrestest.Database(t)
	s := open(t, url, postgres.Options{})
	key, err := s.CreateKey(t.Context(), store.NewKey{Digest: store.Digest{1}, LastFour: "abcd", Name: "n", Owner: "o", Plan: "p", Created: noon}, store.Actor{Name: "admin"})
	if err != nil {
		t.Fatal(err)
	}
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
	checkUnavailable(t, err, "others lock what the call needs")
}

// What the server says is what an operator reads.
func TestErrorsOfTheServer(t *testing.T) {
	url := postgrestest.Database(t)
	s := open(t, url, postgres.Options{})
	for state, tt := range map[string]struct {
		permanent bool
		want      string
	}{
		"53100": {false, "its disk is full"},
		"53200": {false, "it is out of memory"},
		"53400": {false, "it cannot answer now"},
		"58030": {false, "it cannot answer now"},
		"57014": {false, "it canceled the statement"},
		"55P03": {false, "others lock what the call needs"},
		"40001": {false, "others lock what the call needs"},
		"25006": {false, "it is read-only"},
		"42501": {true, "grant the user the rights"},
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
