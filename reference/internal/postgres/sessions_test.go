//go:build unix

package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// The settings of a user or a database, which others chose for other programs, do not
// change what is stored and read.
func TestSettingsOfTheDatabaseDoNotMatter(t *testing.T) {
	for _, setting := range []string{
		"client_encoding = 'LATIN1'", "client_encoding = 'SQL_ASCII'", "DateStyle = 'German'", "DateStyle = 'SQL, MDY'", "TimeZone = 'Asia/Kolkata'",
		"bytea_output = 'escape'", "standard_conforming_strings = off", "backslash_quote = off", "array_nulls = off", "IntervalStyle = 'sql_standard'",
		"transform_null_equals = on", "plan_cache_mode = 'force_generic_plan'",
	} {
		url := postgrestest.Database(t)
		postgrestest.Exec(t, url, "ALTER DATABASE "+query[string](t, url, "SELECT current_database()")+" SET "+setting)
		const exec = "&default_query_exec_mode=exec"
		t.Run(setting+" directly", func(t *testing.T) { checkSession(t, url, url) })
		t.Run(setting+" with exec", func(t *testing.T) { checkSession(t, url, url+exec) })
		t.Run(setting+" through a pooler", func(t *testing.T) { checkSession(t, url, postgrestest.Pooled(t, url)+exec) })
	}
}

// checkSession stores and reads back all kinds of values through a URL, and compares a name
// with what the database has.
func checkSession(t *testing.T, direct, url string) {
	s := open(t, url, postgres.Options{})
	const name = `Réx\'"日本😀`
	k := store.IdempotencyKey{Owner: name, Key: t.Name(), Fingerprint: [32]byte{0, '\\', 0xff}, At: noon}
	pet, _, err := s.CreatePetIf(t.Context(), store.NewPet{Name: name}, &k, nil)
	if err != nil {
		t.Fatalf("CreatePetIf = %v", err)
	}
	again, replayed, err := s.CreatePetIf(t.Context(), store.NewPet{Name: name}, &k, nil)
	if again != pet || !replayed || err != nil {
		t.Errorf("CreatePetIf again = %v, %t, %v, want %v", again, replayed, err, pet)
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
	if err != nil {
		t.Fatalf("CreateKey = %v", err)
	}
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
	server := postgrestest.Start(t)
	for encoding, works := range map[string]bool{"UTF8": true, "SQL_ASCII": true, "LATIN1": false, "WIN1252": false, "EUC_JP": false} {
		name := "in_" + strings.ToLower(encoding)
		server.Exec("postgres", "CREATE DATABASE "+name+" ENCODING '"+encoding+"' LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
		if works {
			checkSession(t, server.URL(name), server.URL(name))
			continue
		}
		_, err := postgres.Open(t.Context(), server.URL(name), postgres.Options{})
		checkText(t, err, "its encoding is "+encoding, "UTF8")
		_, _, err = postgres.Migrate(t.Context(), server.URL(name))
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
