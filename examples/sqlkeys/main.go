// Sqlkeys is a service with its API keys in SQLite, whose owners replace and revoke them.
//
//	go run ./examples/sqlkeys
//	curl -H "Authorization: Bearer $KEY" http://127.0.0.1:8081/pets
//	curl -X POST -H "Authorization: Bearer $KEY" http://127.0.0.1:8081/key    # a new key; the old one works for an hour
//	curl -X DELETE -H "Authorization: Bearer $KEY" http://127.0.0.1:8081/key
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"

	_ "modernc.org/sqlite"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/examples/internal/demo"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/apikey/sqlkeys"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

var plans = map[string]*ratelimit.Plan{
	"free": ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerDay(1000)),
	"pro":  ratelimit.MustPlan("pro", ratelimit.DefaultPenalty(), ratelimit.PerMinute(300), ratelimit.PerDay(10_000)),
}

// A service has keys of a format.
type service struct {
	db     *sql.DB
	keys   *sqlkeys.Table
	format *apikey.Format
}

func main() {
	ctx := context.Background()
	s, err := open(ctx, "keys.db")
	if err != nil {
		log.Fatal(err)
	}
	secret := s.format.Generate()
	_, err = s.keys.CreateFirst(ctx, sqlkeys.NewKey{
		Digest: secret.Digest(), LastFour: secret.LastFour(), Owner: "ann", Plan: "pro", Created: time.Now(),
	})
	switch {
	case err == nil:
		fmt.Printf("KEY=%s\n", secret.Reveal()) // shown once, stored nowhere
	case !errors.Is(err, sqlkeys.ErrExists):
		log.Fatal(err)
	}
	demo.Serve(s.handler())
}

func open(ctx context.Context, file string) (*service, error) {
	format, err := apikey.NewFormat("pet_live_")
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	if err != nil {
		return nil, err
	}
	keys := sqlkeys.NewSQLite(db)
	if _, err := db.ExecContext(ctx, keys.Schema()); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &service{db, keys, format}, nil
}

func (s *service) handler() (http.Handler, error) {
	planOf := func(name string, _ []string) (*ratelimit.Plan, error) { return plans[name], nil }
	verifier, err := apikey.NewVerifier(s.format, sqlkeys.NewStore(s.keys.ByDigest, s.keys.Used, planOf), apikey.Options{})
	if err != nil {
		return nil, err
	}
	auth, err := bearer.New("pets", verifier.Verify, bearer.Options{})
	if err != nil {
		return nil, err
	}
	limited := limit.ByPlan(func(r *http.Request) (string, *ratelimit.Plan, error) {
		p := key(r)
		return p.Owner, p.Plan, nil
	})
	errs := &apierror.Responder{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /pets", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "the pets of %s\n", key(r).Owner) })
	mux.Handle("POST /key", errs.Handle(s.rotate))
	mux.Handle("DELETE /key", errs.Handle(s.revoke))
	return auth.Protect(limited(errs.Mux(mux))), nil
}

// key returns the key of a request.
func key(r *http.Request) apikey.Principal {
	p, _ := bearer.FromContext[apikey.Principal](r.Context())
	return p
}

func (s *service) rotate(w http.ResponseWriter, r *http.Request) error {
	secret := s.format.Generate()
	_, _, err := s.keys.Rotate(r.Context(), key(r).KeyID, sqlkeys.NewKey{
		Digest: secret.Digest(), LastFour: secret.LastFour(), Created: time.Now(),
	}, time.Hour)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, secret.Reveal())
	return err
}

// revoke ends the key that a client sends, as after a leak. Each process refuses it within a
// second.
func (s *service) revoke(w http.ResponseWriter, r *http.Request) error {
	_, _, err := s.keys.Revoke(r.Context(), key(r).KeyID, time.Now())
	return err
}
