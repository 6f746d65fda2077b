package api_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/contract"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// brokenStore fails in the way of fail.
type brokenStore struct {
	store.Pets
	fail func(ctx context.Context) error
}

func (s *brokenStore) Pet(ctx context.Context, _ int64) (store.Pet, error) {
	return store.Pet{}, s.fail(ctx)
}

func (s *brokenStore) ListPets(ctx context.Context, _ store.ListQuery) ([]store.Pet, bool, error) {
	return nil, false, s.fail(ctx)
}

func (s *brokenStore) CreatePet(ctx context.Context, _ store.NewPet) (store.Pet, error) {
	return store.Pet{}, s.fail(ctx)
}

func (s *brokenStore) CreatePetOnce(ctx context.Context, _ store.NewPet, _ store.IdempotencyKey) (store.Pet, bool, error) {
	return store.Pet{}, false, s.fail(ctx)
}

func (s *brokenStore) KeyByDigest(ctx context.Context, _ store.Digest) (store.Key, error) {
	return store.Key{}, s.fail(ctx)
}

func (s *brokenStore) KeyUsed(ctx context.Context, _ string, _ time.Time) error { return s.fail(ctx) }

// brokenLimiter never decides.
type brokenLimiter struct{}

func (brokenLimiter) Take(context.Context, string, *ratelimit.Plan, int64) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, fmt.Errorf("%w: the wire is cut", ratelimit.ErrUnavailable)
}

func (brokenLimiter) TakeAll(context.Context, []ratelimit.Charge, []ratelimit.Decision) error {
	return fmt.Errorf("%w: the wire is cut", ratelimit.ErrUnavailable)
}

func (brokenLimiter) Peek(context.Context, string, *ratelimit.Plan) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, fmt.Errorf("%w: the wire is cut", ratelimit.ErrUnavailable)
}

func (brokenLimiter) Adjust(context.Context, string, *ratelimit.Decision, int64, string) error {
	return fmt.Errorf("%w: the wire is cut", ratelimit.ErrUnavailable)
}

func requests() []contract.Request {
	return []contract.Request{
		{Target: "/v1/pets"},
		{Target: "/v1/pets/1"},
		{Method: "POST", Target: "/v1/pets", Body: `{"name":"x","categoryId":1}`, Header: []string{"Content-Type: application/json"}},
		{Method: "POST", Target: "/v1/pets", Body: `{"name":"x","categoryId":1}`, Header: []string{"Content-Type: application/json", `Idempotency-Key: "x"`}},
	}
}

func TestStoreFails(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fail   func(context.Context) error
		status int
		code   string
	}{
		"is unavailable": {func(context.Context) error {
			return fmt.Errorf("pets: %w: disk full", store.ErrUnavailable)
		}, 503, "unavailable"},
		"does not answer": {func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}, 503, "unavailable"},
		"has an error": {func(context.Context) error { return errors.New("secret detail") }, 500, "internal"},
		"panics":       {func(context.Context) error { panic("secret detail") }, 500, "internal"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, func(c *api.Config) {
				c.Pets = &brokenStore{fail: test.fail}
				c.StoreTimeout = 20 * time.Millisecond
			})
			// There are more failures than the quota has room for.
			c := s.with(s.key(t, "unlucky", "enterprise", "3/minute", "10/day"))
			for _, r := range requests() {
				resp := c.Do(t, r)
				want(t, resp, test.status, test.code)
				if strings.Contains(string(resp.Data), "secret") || strings.Contains(string(resp.Data), "disk") {
					t.Errorf("the cause is told to the client: %s", resp.Data)
				}
			}
			want(t, c.Get(t, "/v1/nothing"), 404, "not_found") // is charged
			if got := fmt.Sprint(left(t, c)); got != "[2 9]" {
				t.Errorf("%s are left of 3 a minute and 10 a day after failures and a 404, want [2 9]: failures are refunded", got)
			}
		})
	}
}

// waitingLimiter waits until the request has ended, as a shared engine does.
type waitingLimiter struct {
	brokenLimiter
	wait func(ctx context.Context) error
}

func (l waitingLimiter) Take(ctx context.Context, _ string, _ *ratelimit.Plan, _ int64) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, l.wait(ctx)
}

// A request that its client cancels is not a failure of the server, whatever step it had
// reached: it has the status 499, and no decision is missing.
func TestClientCancels(t *testing.T) {
	t.Parallel()
	for name, adjust := range map[string]func(c *api.Config, wait func(context.Context) error){
		"in the check of its key": func(c *api.Config, wait func(context.Context) error) { c.Keys = &brokenStore{fail: wait} },
		"in the limiter":          func(c *api.Config, wait func(context.Context) error) { c.Limiter = waitingLimiter{wait: wait} },
		"in the operation":        func(c *api.Config, wait func(context.Context) error) { c.Pets = &brokenStore{fail: wait} },
	} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			var cancel context.CancelFunc
			s := start(t, func(c *api.Config) {
				adjust(c, func(ctx context.Context) error {
					cancel()
					<-ctx.Done()
					return fmt.Errorf("query: %w", ctx.Err())
				})
				c.Logger = slog.New(slog.NewTextHandler(&log, nil))
				c.OnDecision = func(_ *http.Request, _ ratelimit.Caller, _ ratelimit.Decision, err error) {
					if err != nil {
						t.Errorf("the limiter has failed: %v", err)
					}
				}
			})
			for _, r := range requests() {
				log.Reset()
				var ctx context.Context
				ctx, cancel = context.WithCancel(t.Context())
				request := httptest.NewRequestWithContext(ctx, cmp.Or(r.Method, "GET"), r.Target, strings.NewReader(r.Body))
				request.Header.Set("Authorization", "Bearer "+s.Key)
				request.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				s.handler.ServeHTTP(w, request)
				cancel()
				if w.Code != 499 || strings.Contains(log.String(), "level=ERROR") || strings.Count(log.String(), "status=499") != 2 {
					t.Errorf("%s %s: status %d, want 499 in the response, the cause and the line of the request:\n%s", r.Method, r.Target, w.Code, &log)
				}
			}
		})
	}
}

// A key that cannot be checked is not the caller's fault: it is charged to nobody.
func TestKeysCannotBeChecked(t *testing.T) {
	t.Parallel()
	for name, adjust := range map[string]func(*api.Config){
		"the store fails": func(c *api.Config) {
			c.Keys = &brokenStore{fail: func(context.Context) error { return store.ErrUnavailable }}
		},
		"the store panics": func(c *api.Config) {
			c.Keys = &brokenStore{fail: func(context.Context) error { panic("x") }}
		},
		"the plan is gone": func(c *api.Config) {
			c.Plan = func(string, []string) (*ratelimit.Plan, error) { return nil, errors.New("no such plan") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, func(c *api.Config) {
				adjust(c)
				c.Anonymous = ratelimit.MustPlan("anonymous", ratelimit.DefaultPenalty(), ratelimit.PerMinute(3))
			})
			for range 3 { // after which the network has nothing left
				want(t, s.Do(t, none(contract.Request{Target: "/v1/pets"})), 401, "missing_api_key")
			}
			for range 10 {
				for _, r := range append(requests(), contract.Request{Target: "/v1/usage"}) {
					want(t, s.Do(t, r), 503, "unavailable")
				}
			}
			want(t, s.Get(t, "/nothing"), 404, "not_found")
			want(t, s.Do(t, none(contract.Request{Target: "/v1/pets"})), 429, "rate_limit_exceeded")
		})
	}
}

func TestLimiterFails(t *testing.T) {
	t.Parallel()
	var seen decisions
	closed := start(t, func(c *api.Config) { c.Limiter, c.OnDecision = brokenLimiter{}, seen.add })
	closed.Now = time.Now // which the fields of undecided requests are from
	for _, r := range append(requests(), contract.Request{Target: "/v1/usage"}, contract.Request{Target: "/nothing"}) {
		want(t, closed.Do(t, r), 503, "unavailable")
		want(t, closed.Do(t, none(r)), 503, "unavailable")
	}
	if got := seen.take(); got[0] != "GET owner:roomy limited failed=true" {
		t.Errorf("OnDecision was called with %q, want that the limiter failed", got[0])
	}
	if resp, _ := page(t, closed, "GET", "/openapi.json"); resp.StatusCode != http.StatusOK {
		t.Errorf("GET /openapi.json: %d, want 200: it needs no limiter", resp.StatusCode)
	}
	open := start(t, func(c *api.Config) { c.Limiter, c.OnFailure = brokenLimiter{}, "open" })
	open.Now = time.Now
	want(t, open.Get(t, "/v1/pets"), 200, "")
	want(t, open.Get(t, "/v1/usage"), 503, "unavailable")
	want(t, open.Do(t, none(contract.Request{Target: "/v1/pets"})), 401, "missing_api_key")
}

// An error names the field that is wrong.
func TestConfigIsChecked(t *testing.T) {
	for want, spoil := range map[string]func(*api.Config){
		"<nil>": func(*api.Config) {},
		"Pets":  func(c *api.Config) { c.Pets = nil },
		"Plan":  func(c *api.Config) { c.Plan = nil },
		`Deprecations["listPets"]: must be one of ["getPet" "getUsage"]`: func(c *api.Config) { // it shares its path
			c.Deprecations = map[string]deprecation.Options{"listPets": {Since: time.Unix(1_800_000_000, 0)}}
		},
		"getPet: since when": func(c *api.Config) {
			c.Deprecations = map[string]deprecation.Options{"getPet": {}}
		},
	} {
		s := &brokenStore{}
		c := api.Config{
			Config: config.Default(), Pets: s, Keys: s, Limiter: brokenLimiter{}, Logger: slog.New(slog.DiscardHandler),
			Plan: func(string, []string) (*ratelimit.Plan, error) { return nil, nil },
		}
		spoil(&c)
		if _, err := api.New(c); !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("New = %v, want an error that says %q", err, want)
		}
	}
}
