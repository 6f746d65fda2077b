package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/contract"
	"github.com/animalstore/gatehouse/reference/internal/httpserver"
	"github.com/animalstore/gatehouse/reference/internal/openapi"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

var must = testcheck.NoError

// service is the real thing: the handler over a listener, on a database in a
// file. Only the clock is the test's.
type service struct {
	contract.Client
	clock  *clock
	db     *sqlite.Store
	limits *memory.Limiter
	format *apikey.Format

	handler  http.Handler
	document []byte

	log bytes.Buffer
	end func()
}

// logged ends the service, so that it has written every line, and returns its log: as text,
// and the lines by request ID.
func (s *service) logged(t testing.TB) (text string, lines map[string]map[string]any) {
	t.Helper()
	s.end()
	lines = make(map[string]map[string]any)
	for written := range bytes.Lines(s.log.Bytes()) {
		var line map[string]any
		if err := json.Unmarshal(written, &line); err != nil {
			t.Fatalf("the log has %q, want one line of JSON: %v", written, err)
		}
		id, _ := line["request_id"].(string)
		lines[id] = line
	}
	return s.log.String(), lines
}

// start serves what the defaults and adjust make. The client has a key of a plan
// that no test uses up.
func start(t testing.TB, adjust func(*api.Config)) *service {
	t.Helper()
	s := &service{clock: &clock{}}
	s.clock.set(time.Date(2026, time.November, 20, 12, 0, 5, 0, time.UTC))
	s.Now = s.clock.Now
	var err error
	s.db, err = sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "pets.db"), sqlite.Options{})
	must(t, err)
	t.Cleanup(func() { s.db.Close() })
	s.limits, err = memory.New(memory.Options{Now: s.clock.Now})
	must(t, err)
	s.format, err = apikey.NewFormat(api.KeyPrefix)
	must(t, err)
	defaults := config.Default()
	defaults.Anonymous = ratelimit.MustPlan("anonymous", ratelimit.Penalty{}, ratelimit.PerMinute(100_000))
	c := api.Config{
		Config: defaults, Pets: s.db, Keys: unnoted{s.db}, Limiter: s.limits, Plan: defaults.Plans.Of,
		Logger: slog.New(slog.NewJSONHandler(&s.log, nil)),
		Now:    s.clock.Now,
	}
	if adjust != nil {
		adjust(&c)
	}
	s.handler, err = api.New(c)
	must(t, err)
	s.document, err = openapi.New(c.Document())
	must(t, err)
	s.Contract = contractOf(t, s.document)
	srv, err := httpserver.New(s.handler, httpserver.Options{MaxConns: 64, Logger: c.Logger})
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s.Addr = l.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ctx, l) }()
	s.end = sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the server did not end well: %v", err)
		}
	})
	t.Cleanup(s.end)
	s.Key = s.key(t, "roomy", "enterprise", "4000000000/minute")
	return s
}

// contracts has the contract of each document. To make one takes longer than most
// tests, and they have few documents between them.
var contracts sync.Map

func contractOf(t testing.TB, document []byte) *contract.Contract {
	t.Helper()
	if c, ok := contracts.Load(string(document)); ok {
		return c.(*contract.Contract)
	}
	c, err := contract.New(document)
	must(t, err)
	contracts.Store(string(document), c)
	return c
}

// key issues a key.
func (s *service) key(t testing.TB, owner, plan string, quotas ...string) string {
	t.Helper()
	secret := s.format.Generate()
	k := newKey(plan, quotas...)
	k.Owner = owner
	s.issue(t, secret, k)
	return secret.Reveal()
}

func newKey(plan string, quotas ...string) store.NewKey {
	return store.NewKey{Name: "test", Owner: "somebody", Plan: plan, Quotas: quotas}
}

func (s *service) issue(t testing.TB, secret apikey.Secret, k store.NewKey) store.Key {
	t.Helper()
	k.Digest, k.LastFour, k.Created = secret.Digest(), secret.LastFour(), s.clock.Now()
	stored, err := s.db.CreateKey(t.Context(), k, store.Actor{Name: "test"})
	must(t, err)
	return stored
}

// pets stores n pets, in turn of each status.
func (s *service) pets(t testing.TB, n int) []store.Pet {
	t.Helper()
	stored := make([]store.Pet, n)
	for i := range stored {
		var err error
		stored[i], err = s.db.CreatePet(t.Context(), store.NewPet{
			Name: "Duke", CategoryID: int64(i), Status: []store.Status{store.Available, store.Pending, store.Sold}[i%3],
		})
		must(t, err)
	}
	return stored
}

// with returns a client with another key.
func (s *service) with(key string) *contract.Client {
	c := s.Client
	c.Key = key
	return &c
}

// want fails the test unless resp has a status and, if it is an error, a code.
func want(t testing.TB, resp *contract.Response, status int, code string) {
	t.Helper()
	if got := resp.Code(); resp.StatusCode != status || got != code && resp.Method != "HEAD" {
		t.Errorf("%s %.100q: answered with %d %q, want %d %q\n%.300s", resp.Method, resp.Target, resp.StatusCode, got, status, code, resp.Data)
	}
}

type clock struct{ now atomic.Pointer[time.Time] }

func (c *clock) Now() time.Time          { return *c.now.Load() }
func (c *clock) set(t time.Time)         { c.now.Store(&t) }
func (c *clock) advance(d time.Duration) { c.set(c.Now().Add(d)) }

// none is a request without a key.
func none(r contract.Request) contract.Request {
	r.Key = new(string)
	return r
}

// unnoted does not note the use of keys, which changes the version of the database at any time.
type unnoted struct{ *sqlite.Store }

func (unnoted) KeyUsed(context.Context, string, time.Time) error { return nil }
