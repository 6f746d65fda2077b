package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	_ "modernc.org/sqlite"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/ratelimit"
)

// An account is the principal of this service: key ID, owner and plan, and also scopes.
type account struct {
	apikey.Principal
	Scopes []string
}

// A store has the digests of the keys, and not the keys.
type store struct {
	db         *sql.DB
	live, test *apikey.Format
	plans      map[string]*ratelimit.Plan
}

const schema = `CREATE TABLE IF NOT EXISTS api_keys (
	digest    BLOB PRIMARY KEY,
	id        TEXT NOT NULL UNIQUE,
	last_four TEXT NOT NULL, -- for people, to tell their keys apart
	owner     TEXT NOT NULL,
	plan      TEXT NOT NULL,
	scopes    TEXT NOT NULL, -- separated by spaces
	expires   TIMESTAMP,
	revoked   TIMESTAMP
)`

// testPrefix is that of the keys that give access to test data.
const testPrefix = "pet_test_"

func openStore(ctx context.Context, file string, plans ...*ratelimit.Plan) (*store, error) {
	live, err := apikey.NewFormat("pet_live_")
	if err != nil {
		return nil, err
	}
	test, err := apikey.NewFormat(testPrefix)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_time_format=sqlite")
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s := &store{db, live, test, map[string]*ratelimit.Plan{}}
	for _, plan := range plans {
		s.plans[plan.Name()] = plan
	}
	return s, nil
}

// issue stores a new key. The zero time means that it does not expire.
func (s *store) issue(ctx context.Context, f *apikey.Format, owner string, plan *ratelimit.Plan, scopes string, expires time.Time) (apikey.Secret, error) {
	secret := f.Generate()
	_, err := s.db.ExecContext(ctx, `INSERT INTO api_keys (digest, id, last_four, owner, plan, scopes, expires) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		secret.Digest(), apikey.NewKeyID(), secret.LastFour(), owner, plan.Name(), scopes, sql.NullTime{Time: expires, Valid: !expires.IsZero()})
	return secret, err
}

// Lookup finds the key of a request. The Verifier calls it, and caches the record.
func (s *store) Lookup(ctx context.Context, d apikey.Digest) (apikey.Record[account], error) {
	var (
		a                account
		plan, scopes     string
		expires, revoked sql.NullTime // NULL gives the zero time: never
	)
	err := s.db.QueryRowContext(ctx, `SELECT id, owner, plan, scopes, expires, revoked FROM api_keys WHERE digest = ?`, d).
		Scan(&a.KeyID, &a.Owner, &plan, &scopes, &expires, &revoked)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return apikey.Record[account]{}, apikey.ErrUnknown
	case err != nil:
		return apikey.Record[account]{}, err
	case s.plans[plan] == nil:
		return apikey.Record[account]{}, fmt.Errorf("key %s has the plan %q, which does not exist", a.KeyID, plan)
	}
	a.Plan, a.Scopes = s.plans[plan], strings.Fields(scopes)
	return apikey.Record[account]{Principal: a, Expires: expires.Time, Revoked: revoked.Time}, nil
}

// revoke ends a key now, and returns its digest. A key that is already revoked stays so.
func (s *store) revoke(ctx context.Context, id string) (d apikey.Digest, err error) {
	err = s.db.QueryRowContext(ctx, `UPDATE api_keys SET revoked = coalesce(revoked, ?) WHERE id = ? RETURNING digest`, time.Now(), id).Scan(&d)
	return d, err
}

// data says what a key gives access to.
func (s *store) data(a account) string {
	if a.Prefix == testPrefix {
		return "test data"
	}
	return "live data"
}
