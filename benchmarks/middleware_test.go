package benchmarks

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/didip/tollbooth/v8"
	tollboothlimiter "github.com/didip/tollbooth/v8/limiter"
	"github.com/go-chi/httprate"
	"github.com/sethvargo/go-limiter/httplimit"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	throttledstore "github.com/throttled/throttled/v2/store/memstore"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	ululestore "github.com/ulule/limiter/v3/drivers/store/memory"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A discard is a ResponseWriter that allocates nothing.
type discard struct {
	header http.Header
	status int
}

func (w *discard) Header() http.Header { return w.header }

func (w *discard) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return len(p), nil
}

func (w *discard) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

// keyField is the request field that holds the caller's key, where no key is
// verified.
const keyField = "X-Api-Key"

func keyOf(r *http.Request) string { return r.Header.Get(keyField) }

func keyOrError(r *http.Request) (string, error) { return keyOf(r), nil }

// A quotaMiddleware makes the middleware of a peer for one quota.
type quotaMiddleware func(tb testing.TB, limit int, window time.Duration) func(http.Handler) http.Handler

// stacks are middlewares that hold a request against both quotas: one of ours,
// two of a peer's.
var stacks = []struct {
	peer string
	new  func(tb testing.TB, minute, day int) func(http.Handler) http.Handler
}{
	{"gatehouse", gatehouseStack},
	{"sethvargo", twice(sethvargoMiddleware)},
	{"throttled", twice(throttledMiddleware)},
	{"httprate", twice(httprateMiddleware)},
	{"ulule", twice(ululeMiddleware)},
	{"tollbooth", twice(tollboothMiddleware)},
	{"none", func(testing.TB, int, int) func(http.Handler) http.Handler {
		return func(h http.Handler) http.Handler { return h }
	}},
}

// twice stacks the middlewares of a day and a minute, the minute's asked first.
func twice(quota quotaMiddleware) func(tb testing.TB, minute, day int) func(http.Handler) http.Handler {
	return func(tb testing.TB, minute, day int) func(http.Handler) http.Handler {
		m, d := quota(tb, minute, minuteWindow), quota(tb, day, dayWindow)
		return func(next http.Handler) http.Handler { return m(d(next)) }
	}
}

func gatehouseStack(tb testing.TB, minute, day int) func(http.Handler) http.Handler {
	p := plan(minute, day)
	return newLimit(newMemory(memory.Options{}), func(r *http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: keyOf(r), Plan: p}, nil
	})
}

func newLimit(l ratelimit.Limiter, identify func(*http.Request) (ratelimit.Caller, error)) func(http.Handler) http.Handler {
	return testcheck.Must(limit.New(l, identify, limit.Options{}))
}

func sethvargoMiddleware(tb testing.TB, limit int, window time.Duration) func(http.Handler) http.Handler {
	store := testcheck.Must(memorystore.New(&memorystore.Config{Tokens: uint64(limit), Interval: window}))
	tb.Cleanup(func() { store.Close(context.Background()) })
	m := testcheck.Must(httplimit.NewMiddleware(store, keyOrError))
	return m.Handle
}

func throttledMiddleware(tb testing.TB, limit int, window time.Duration) func(http.Handler) http.Handler {
	store := testcheck.Must(throttledstore.NewCtx(0))
	m := &throttled.HTTPRateLimiterCtx{
		RateLimiter: newThrottledLimiter(store, limit, window),
		VaryBy:      &throttled.VaryBy{Custom: keyOf},
	}
	return m.RateLimit
}

func httprateMiddleware(_ testing.TB, limit int, window time.Duration) func(http.Handler) http.Handler {
	return httprate.LimitBy(limit, window, keyOrError)
}

func ululeMiddleware(_ testing.TB, limit int, window time.Duration) func(http.Handler) http.Handler {
	store := ululestore.NewStoreWithOptions(limiter.StoreOptions{Prefix: limiter.DefaultPrefix})
	l := limiter.New(store, limiter.Rate{Limit: int64(limit), Period: window})
	return stdlib.NewMiddleware(l, stdlib.WithKeyGetter(keyOf)).Handler
}

func tollboothMiddleware(_ testing.TB, limit int, window time.Duration) func(http.Handler) http.Handler {
	l := newTollboothLimiter(limit, window).
		SetIPLookup(tollboothlimiter.IPLookup{Name: "RemoteAddr"}).
		SetIgnoreURL(true).
		SetHeader(keyField, nil)
	return tollbooth.HTTPMiddleware(l)
}

var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })

func newRequest() *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/v1/pets", nil)
	r.Header.Set(keyField, newKey(0))
	return r
}

// serve serves the same request for as long as the benchmark lasts.
func (s scene) serve(b *testing.B, h http.Handler, r *http.Request) {
	w := &discard{header: make(http.Header)}
	requests, admitted := 0, 0
	rest()
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		w.status = 0
		h.ServeHTTP(w, r)
		requests++
		if w.status == http.StatusOK {
			admitted++
		}
	}
	s.check(b, requests, admitted)
}

// BenchmarkMiddleware is one request through the middleware, with the fields of
// both quotas in the response, over a handler that does nothing. To clear the
// response writer and to call the handler takes what peer=none does.
func BenchmarkMiddleware(b *testing.B) {
	for _, s := range []scene{
		{name: "allowed", minute: roomy, day: roomy},
		{name: "denied", minute: 1, day: 1000, denied: true},
	} {
		for _, stack := range stacks {
			if s.denied && stack.peer == "none" {
				continue
			}
			b.Run("case="+s.name+"/peer="+stack.peer, func(b *testing.B) {
				h, r := stack.new(b, s.minute, s.day)(ok), newRequest()
				h.ServeHTTP(&discard{header: make(http.Header)}, r)
				s.serve(b, h, r)
			})
		}
	}
}

// A keyStore knows one key.
type keyStore struct {
	digest apikey.Digest
	record apikey.Record[apikey.Principal]
}

func (s *keyStore) Lookup(_ context.Context, d apikey.Digest) (apikey.Record[apikey.Principal], error) {
	if d != s.digest {
		return apikey.Record[apikey.Principal]{}, apikey.ErrUnknown
	}
	return s.record, nil
}

// BenchmarkGate is one request through all that stands in front of an API: the
// bearer token read, the key verified from the cache, both quotas charged, the
// fields set, and the principal in the handler's hands.
func BenchmarkGate(b *testing.B) {
	for _, s := range []scene{
		{name: "allowed", minute: roomy, day: roomy},
		{name: "denied", minute: 1, day: 1000, denied: true},
	} {
		b.Run("case="+s.name+"/peer=gatehouse", func(b *testing.B) {
			h, r := newGate(plan(s.minute, s.day))
			h.ServeHTTP(&discard{header: make(http.Header)}, r)
			s.serve(b, h, r)
		})
	}
}

// newGate returns the gate and a request with a valid key.
func newGate(p *ratelimit.Plan) (http.Handler, *http.Request) {
	format := testcheck.Must(apikey.NewFormat("pet_live_"))
	secret := format.Generate()
	principal := apikey.Principal{KeyID: apikey.NewKeyID(), Owner: newKey(0), Plan: p}
	store := &keyStore{secret.Digest(), apikey.Record[apikey.Principal]{Principal: principal}}
	verifier := testcheck.Must(apikey.NewVerifier(format, store, apikey.Options{}))
	auth := testcheck.Must(bearer.New("pets", verifier.Verify, bearer.Options{}))
	limited := newLimit(newMemory(memory.Options{}), func(r *http.Request) (ratelimit.Caller, error) {
		p, _ := bearer.FromContext[apikey.Principal](r.Context())
		return ratelimit.Caller{Subject: p.Subject, Plan: p.Plan}, nil
	})
	h := auth.Identify(limited(auth.Require(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p, ok := bearer.FromContext[apikey.Principal](r.Context()); ok && p.KeyID == principal.KeyID {
			w.WriteHeader(http.StatusOK)
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
	}))))
	r := httptest.NewRequest(http.MethodGet, "/v1/pets", nil)
	r.Header.Set("Authorization", "Bearer "+secret.Reveal())
	return h, r
}
