package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/apikey/sqlkeys"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/middleware/telemetry"
	"github.com/animalstore/gatehouse/ratelimit"
)

func newHandler(limiter ratelimit.Limiter, s *service, meters *telemetry.Telemetry) (http.Handler, error) {
	errs := &apierror.Responder{RequestID: middleware.RequestIDFrom, Write: writeError}
	planOf := func(name string, _ []string) (*ratelimit.Plan, error) { return (*s.plans.Load())[name].tokens, nil }
	verifier, err := apikey.NewVerifier(s.format, sqlkeys.NewStore(s.keys.ByDigest, s.keys.Used, planOf), apikey.Options{})
	if err != nil {
		return nil, err
	}
	auth, err := bearer.New("texts", verifier.Verify, bearer.Options{Errors: errs})
	if err != nil {
		return nil, err
	}
	// A text is charged what it can cost at most, and settled when it is written. One that fails is
	// not charged. If this server dies meanwhile, the charge is given back after ten seconds.
	limited, err := limit.New(limiter, s.identify, limit.Options{
		Cost: func(r *http.Request) int64 { return orderOf(r).MaxTokens }, Settle: true, Hold: 10 * time.Second,
		ChargeIf: limit.NotServerError, Observe: meters.Decision, Errors: errs,
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /v1/texts", readOrder(errs, limited(errs.Handle(s.write))))
	mux.Handle("POST /v1/key", errs.Handle(s.rotate))
	return middleware.Chain(errs.Mux(mux),
		middleware.RequestID, middleware.AccessLog(nil), errs.Recover, meters.Panics, middleware.SecurityHeaders,
		middleware.BodyLimit(1<<16, errs), auth.Identify, meters.Authentication, auth.Require), nil
}

func principal(r *http.Request) apikey.Principal {
	p, _ := bearer.FromContext[apikey.Principal](r.Context())
	return p
}

// identify returns what a text is charged to: its tokens to the user and to the company, and one
// request to the user, under another subject.
func (s *service) identify(r *http.Request) (ratelimit.Caller, error) {
	p := principal(r)
	_, company, _ := strings.Cut(p.Owner, "@")
	of := (*s.plans.Load())[p.Plan.Name()]
	return ratelimit.Caller{
		Subject: p.Subject, Plan: p.Plan,
		Also: []ratelimit.Charge{
			{Subject: "requests:" + p.Owner, Plan: of.requests, Cost: 1},
			{Subject: "company:" + company, Plan: of.company}, // the one that most requests share is last
		},
	}, nil
}

type order struct {
	About     string `json:"about"`
	MaxTokens int64  `json:"max_tokens"`
}
type orderKey struct{}

func orderOf(r *http.Request) order {
	o, _ := r.Context().Value(orderKey{}).(order)
	return o
}

var errOrder = apierror.New(http.StatusBadRequest, "invalid_order",
	`The body must be JSON such as {"about": "cats", "max_tokens": 50}, with max_tokens from 1 to 500.`)

// readOrder reads the body before the limit, which needs the cost.
func readOrder(errs *apierror.Responder, next http.Handler) http.Handler {
	return errs.Handle(func(w http.ResponseWriter, r *http.Request) error {
		var o order
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil || o.MaxTokens < 1 || o.MaxTokens > 500 {
			return errOrder.Wrap(err)
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), orderKey{}, o)))
		return nil
	})
}

// write stands for a model: it streams a text, and settles what that has cost.
func (s *service) write(w http.ResponseWriter, r *http.Request) error {
	tokens, o := int64(0), orderOf(r)
	defer func() { // also after the client has disconnected
		settlement := limit.FromContext(r.Context())
		if err := settlement.Settle(r.Context(), tokens); err != nil {
			log.Printf("%d tokens of %s: %v", tokens, settlement.Caller().Subject, err)
		}
	}()
	for _, word := range strings.Fields("I know nothing of " + o.About) {
		if tokens == o.MaxTokens || r.Context().Err() != nil {
			break
		}
		tokens++
		fmt.Fprintln(w, word)
		_ = http.NewResponseController(w).Flush()
	}
	return nil
}

// rotate gives the user a new key. The old one works for an hour.
func (s *service) rotate(w http.ResponseWriter, r *http.Request) error {
	secret := s.format.Generate()
	_, _, err := s.keys.Rotate(r.Context(), principal(r).KeyID, sqlkeys.NewKey{
		Digest: secret.Digest(), LastFour: secret.LastFour(), Created: time.Now(),
	}, time.Hour)
	if err == nil {
		_, err = fmt.Fprintln(w, secret.Reveal())
	}
	return err
}

// writeError writes errors in the service's own form.
func writeError(w http.ResponseWriter, _ *http.Request, e *apierror.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"type": e.Code, "message": e.Message}})
}

// A plan has a quota for the requests of a user, one for the tokens of the user, and one for the
// tokens of the company.
const planSchema = `
CREATE TABLE IF NOT EXISTS plans (name TEXT PRIMARY KEY, requests TEXT NOT NULL, tokens TEXT NOT NULL, company TEXT NOT NULL);
INSERT INTO plans SELECT 'team', '60/minute', '20000/day', '100000/month' WHERE NOT EXISTS (SELECT 1 FROM plans)`

type plans struct{ requests, tokens, company *ratelimit.Plan }

type service struct {
	db     *sql.DB
	keys   *sqlkeys.Table
	format *apikey.Format
	plans  atomic.Pointer[map[string]plans] // by name
}

func open(ctx context.Context, file string) (*service, error) {
	format, err := apikey.NewFormat("text_")
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)")
	if err != nil {
		return nil, err
	}
	s := &service{db: db, keys: sqlkeys.NewSQLite(db), format: format}
	_, err1 := db.ExecContext(ctx, s.keys.Schema())
	_, err2 := db.ExecContext(ctx, planSchema)
	if err := errors.Join(err1, err2, s.readPlans(ctx)); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// firstKey creates a key if there is none. It is shown once, and stored nowhere.
func (s *service) firstKey(ctx context.Context, out io.Writer) error {
	secret := s.format.Generate()
	_, err := s.keys.CreateFirst(ctx, sqlkeys.NewKey{
		Digest: secret.Digest(), LastFour: secret.LastFour(), Owner: "ann@acme", Plan: "team", Created: time.Now(),
	})
	if errors.Is(err, sqlkeys.ErrExists) {
		return nil
	}
	if err == nil {
		_, err = fmt.Fprintf(out, "KEY=%s\n", secret.Reveal())
	}
	return err
}

// keepPlans reads the plans every ten seconds. Usage belongs to subjects and not to plans, so it
// stays. If the plans cannot be read, the last ones stay in force.
func (s *service) keepPlans(ctx context.Context) {
	for range time.Tick(10 * time.Second) {
		if err := s.readPlans(ctx); ctx.Err() != nil {
			return
		} else if err != nil {
			log.Printf("the plans stay as they are: %v", err)
		}
	}
}

func (s *service) readPlans(ctx context.Context) error {
	rows, err := s.db.QueryContext(ctx, "SELECT name, requests, tokens, company FROM plans")
	if err != nil {
		return err
	}
	defer rows.Close()
	all := map[string]plans{}
	for rows.Next() {
		var name string
		var texts [3]string
		var quotas [3]ratelimit.Quota
		err := rows.Scan(&name, &texts[0], &texts[1], &texts[2])
		for i := range texts {
			err = errors.Join(err, quotas[i].UnmarshalText([]byte(texts[i])))
		}
		if err != nil {
			return fmt.Errorf("plan %q: %w", name, err)
		}
		all[name] = plans{
			// Only requests of a user lead to a ban: one of the company would stop all users.
			requests: ratelimit.MustPlan(name, ratelimit.DefaultPenalty(), quotas[0]),
			tokens:   ratelimit.MustPlan(name, ratelimit.Penalty{}, quotas[1]),
			company:  ratelimit.MustPlan(name, ratelimit.Penalty{}, quotas[2]).WithScope("company"),
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	s.plans.Store(&all)
	return nil
}
