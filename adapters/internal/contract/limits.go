package contract

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A Service is a service with a limit of an adapter, which TestLimits compares with one of
// net/http.
type Service struct {
	Name   string
	RPC    bool  // it has no other fields than those of the limit, and none in shadow mode
	NoAuth bool  // the adapter does not authenticate
	Native error // an error of identify in the form of the framework, which means 401; nil if there is none

	// Start starts the service and returns a function that sends a request to it. A panic
	// of the handler is answered with 500.
	Start func(t *testing.T, c Chain) func(Request) Answer
}

// A Chain is what a service runs, the outermost first: Identify of Auth, the limits, Require
// of Auth, and a handler that gets the text of the request and returns a status. Auth may
// be nil.
type Chain struct {
	Auth   *bearer.Authenticator[string]
	Limits []Limit
	Handle func(ctx context.Context, text string) (status int)
}

// A Limit has the arguments of a constructor. If Refund is true, ChargeIf is NotServerError.
type Limit struct {
	Engine   ratelimit.Limiter
	Identify func(*http.Request) (ratelimit.Caller, error)
	Options  limit.Options
	Refund   bool
}

// Middlewares returns the chain around the handler. Recover is the outermost.
func (c Chain) Middlewares(t *testing.T) []middleware.Middleware {
	t.Helper()
	all := []middleware.Middleware{middleware.Recover(Errors)}
	if c.Auth != nil {
		all = append(all, c.Auth.Identify)
	}
	for _, l := range c.Limits {
		if l.Refund {
			l.Options.ChargeIf = limit.NotServerError
		}
		m, err := limit.New(l.Engine, l.Identify, l.Options)
		testcheck.NoError(t, err)
		all = append(all, m)
	}
	if c.Auth != nil {
		all = append(all, c.Auth.Require)
	}
	return all
}

// ServeHTTP is the handler.
func (c Chain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if status := c.Handle(r.Context(), strings.TrimPrefix(r.URL.Path, "/")); status != http.StatusOK {
		w.WriteHeader(status)
	}
}

// A Request is one to a Service.
type Request struct {
	Method        string // not of RPC
	Text          string // for the handler, and the path
	Authorization []string
}

// HTTP returns a Service of an adapter for net/http. router returns a router that runs the
// middlewares around h.
func HTTP(router func(h http.Handler, m ...middleware.Middleware) http.Handler) Service {
	return Service{Start: func(t *testing.T, c Chain) func(Request) Answer {
		send := Serve(t, router(c, c.Middlewares(t)...))
		return func(r Request) Answer { return send(r.Method, "/"+r.Text, "", r.Authorization...) }
	}}
}

// reference is what other services are compared with.
var reference = HTTP(middleware.Chain)

// TestLimits sends the same requests to the services of an adapter and to one of net/http, and
// compares what client, handler, Observe, the log and the engine see of them.
func TestLimits(t *testing.T, services ...Service) {
	for _, sc := range scenarios {
		if s := services[0]; s.RPC && sc.httpOnly || s.NoAuth && sc.tokens != nil {
			continue
		}
		t.Run(sc.name, func(t *testing.T) {
			want := sc.transcript(t, reference, services[0])
			for _, s := range services {
				if got := sc.transcript(t, s, s); got != want {
					t.Errorf("net/http:\n%s\nthe adapter, %s:\n%s", want, s.Name, got)
				}
			}
		})
	}
}

// A scenario is a limit, and the requests to it.
type scenario struct {
	name     string
	requests string // the words are what the handler does
	httpOnly bool

	caller  ratelimit.Caller // that identify returns; ann if it is zero
	err     error            // of identify; errNative stands for one of the framework
	down    bool             // the engine
	nested  bool             // in a wider limit
	options limit.Options
	refund  bool
	tokens  []string // of the requests, in turn; "" is none, and a comma means two
	wall    bool     // times are those of the clock of the system, and not compared
}

var (
	small   = ratelimit.MustPlan("small", ratelimit.Penalty{Strikes: 1, Ban: time.Minute, Growth: 1, Max: time.Minute, Forgive: time.Hour}, ratelimit.PerMinute(3), ratelimit.PerDay(3))
	wide    = ratelimit.MustPlan("wide", ratelimit.Penalty{}, ratelimit.PerMinute(50))
	smooth  = ratelimit.MustPlan("smooth", ratelimit.Penalty{}, ratelimit.PerMinute(11).Smooth(1))
	staff   = ratelimit.UnlimitedPlan("staff")
	debtor  = ratelimit.SuspendedPlan("debtor")
	both    = limit.XRateLimit | limit.DraftRateLimit
	unpaid  = apierror.New(http.StatusForbidden, "unpaid", "Pay first.")
	errDial = errors.New("dial tcp 10.0.0.7:443")
	errAway = fmt.Errorf("%w: %w", ratelimit.ErrUnavailable, errDial)
	open    = limit.Options{FailOpen: true}
	shadow  = limit.Options{Shadow: true}
	reserve = limit.Options{Settle: true}
	german  = limit.Options{Errors: &apierror.Responder{Translate: func(_ *http.Request, e *apierror.Error) string { return fmt.Sprint("Fehler: ", e.Code) }}}
	own     = limit.Options{Errors: &apierror.Responder{Write: func(w http.ResponseWriter, _ *http.Request, e *apierror.Error) {
		w.Header().Set("Content-Type", "text/own")
		w.WriteHeader(e.Status)
		_, _ = io.WriteString(w, string(e.Code))
	}}}
	ownBody = limit.Options{Errors: &apierror.Responder{Write: func(w http.ResponseWriter, _ *http.Request, _ *apierror.Error) {
		_, _ = io.WriteString(w, "own")
	}}}

	errNative     = errors.New("of the framework")
	errNativeAway = fmt.Errorf("%w: %w", errAway, errNative)
)

// cost is what a request costs.
func cost(units int64) limit.Options {
	return limit.Options{Cost: func(*http.Request) int64 { return units }}
}

// under returns ann under a plan, with a charge for all under another one if that is not nil.
func under(plan, also *ratelimit.Plan) ratelimit.Caller {
	c := ratelimit.Caller{Subject: "ann", Plan: plan}
	if also != nil {
		c.Also = []ratelimit.Charge{{Subject: "all", Plan: also}}
	}
	return c
}

// kind returns ann of a kind, under a plan with bans.
func kind(k ratelimit.Kind) ratelimit.Caller {
	return ratelimit.Caller{Subject: "ann", Plan: small, Kind: k}
}

var scenarios = []scenario{
	{name: "limited", requests: "ok notfound ok ok"},
	{name: "until a ban", caller: under(small, nil), requests: "ok ok ok ok ok ok"},
	{name: "until a ban, an API key", caller: kind(ratelimit.KindAPIKey), requests: "ok ok ok ok ok ok"},
	{name: "until a ban, a network", caller: kind(ratelimit.KindNetwork), requests: "ok ok ok ok ok ok"},
	{name: "refunds", refund: true, requests: "ok internal unavailable panic notfound ok"},
	{name: "refunds with Context", refund: true, options: reserve, requests: "ok internal panic ok ok"},
	{name: "no refunds", requests: "internal panic ok"},
	{name: "a refund that was settled", refund: true, options: reserve, requests: "settle-internal ok"},
	{name: "settle", options: reserve, requests: "settle ok"},
	{name: "settle a refusal", options: limit.Options{Settle: true, Shadow: true}, requests: "settle settle"},
	{name: "fractions of a second", caller: under(smooth, nil), requests: "ok ok"},
	{name: "several charges", caller: under(wide, small), refund: true, requests: "ok internal ok ok ok ok ok"},
	{name: "several charges, unlimited", caller: under(staff, small), refund: true, requests: "ok internal ok ok ok"},
	{name: "suspended", caller: under(debtor, nil), requests: "ok"},
	{name: "unlimited", caller: under(staff, nil), refund: true, requests: "ok internal ok ok"},
	{name: "no plan", caller: under(nil, nil), requests: "ok"},
	{name: "no plan, shadow", caller: under(nil, nil), options: shadow, requests: "ok"},
	{name: "no subject", wall: true, caller: ratelimit.Caller{Plan: Two}, requests: "ok"},
	{name: "no subject, FailOpen", wall: true, caller: ratelimit.Caller{Plan: Two}, options: open, requests: "ok"},
	{name: "a subject twice", wall: true, caller: ratelimit.Caller{Subject: "all", Plan: Two, Also: under(Two, wide).Also}, requests: "ok"},
	{name: "draft fields", options: limit.Options{Headers: both}, requests: "ok ok ok"},
	{name: "no fields", options: limit.Options{Headers: limit.NoHeaders}, requests: "ok ok ok"},
	{name: "a name", options: limit.Options{Name: "search"}, requests: "ok ok ok"},
	{name: "one inside another", nested: true, requests: "ok ok ok"},
	{name: "cost", options: cost(2), requests: "ok ok"},
	{name: "cost above the limit", options: cost(5), requests: "ok"},
	{name: "shadow", caller: under(small, nil), options: shadow, refund: true, requests: "ok internal ok ok ok ok ok"},
	{name: "engine down", wall: true, down: true, requests: "ok"},
	{name: "engine down, FailOpen", wall: true, down: true, options: open, requests: "ok internal"},
	{name: "engine down, shadow", wall: true, down: true, options: shadow, requests: "ok"},
	{name: "identify: an answer", err: unpaid, requests: "ok"},
	{name: "identify: an answer, FailOpen", err: unpaid, options: open, requests: "ok"},
	{name: "identify: an answer, shadow", err: unpaid, options: shadow, refund: true, requests: "ok internal"},
	{name: "identify: with a cause", err: unpaid.Wrap(errDial), requests: "ok"},
	{name: "identify: wrapped", err: fmt.Errorf("billing: %w", unpaid), requests: "ok"},
	{name: "identify: private", err: errDial, requests: "ok"},
	{name: "identify: a nil error", err: (*apierror.Error)(nil), requests: "ok"},
	{name: "identify: no answer", err: errAway, requests: "ok"},
	{name: "identify: no answer, FailOpen", err: errAway, options: open, refund: true, requests: "ok internal"},
	{name: "identify: no answer, invalid", err: fmt.Errorf("%w: %w", ratelimit.ErrInvalid, errAway), options: open, requests: "ok"},
	{name: "identify: of the framework", err: errNative, requests: "ok"},
	{name: "identify: of the framework, FailOpen", err: errNative, options: open, requests: "ok"},
	{name: "identify: of the framework, shadow", err: errNative, options: shadow, requests: "ok"},
	{name: "identify: of the framework, no answer", err: errNativeAway, requests: "ok"},
	{name: "identify: of the framework, no answer, FailOpen", err: errNativeAway, options: open, requests: "ok"},
	{name: "Translate", options: german, requests: "ok ok ok"},
	{name: "Write", httpOnly: true, options: own, requests: "ok ok ok"},
	{name: "Write without a status", httpOnly: true, options: ownBody, requests: "ok ok ok"},
	{name: "HEAD", httpOnly: true, caller: under(small, nil), requests: "ok ok HEAD HEAD HEAD HEAD"},
	{name: "authenticated", tokens: []string{"ann", "ann", "ann"}, requests: "ok ok ok"},
	{name: "no token", tokens: []string{"", "", ""}, requests: "ok ok ok"},
	{name: "a wrong token", tokens: []string{"eve", "eve", "eve", "ann"}, requests: "ok ok ok ok"},
	{name: "two tokens", tokens: []string{"ann,ann"}, requests: "ok"},
	{name: "tokens cannot be checked", tokens: []string{"down"}, requests: "ok"},
	{name: "guesses", wall: true, tokens: []string{"guess1", "guess2"}, requests: "ok ok"},
	{name: "a translated refusal of a token", tokens: []string{""}, options: german, requests: "ok"},
}

// native reports whether the text of the error of identify is that of the framework.
func (sc *scenario) native() bool { return errors.Is(sc.err, errNative) }

// identify counts requests without a token for their network, if others have one.
func (sc *scenario) identify(framework error) func(*http.Request) (ratelimit.Caller, error) {
	caller, err := sc.caller, sc.err
	if caller.Subject == "" && caller.Plan == nil {
		caller = under(Two, nil)
	}
	switch alone := err == errNative; {
	case !sc.native():
	case alone && framework == nil:
		err = apierror.New(http.StatusUnauthorized, "unauthorized", "Sign in.")
	case alone:
		err = framework
	case framework == nil:
		err = errAway
	default:
		err = fmt.Errorf("%w: %w", errAway, framework)
	}
	return func(r *http.Request) (ratelimit.Caller, error) {
		if _, ok := bearer.FromContext[string](r.Context()); sc.tokens != nil && !ok {
			return ratelimit.Caller{Subject: "network:" + clientip.FromRemoteAddr().Addr(r).String(), Plan: Two, Kind: ratelimit.KindNetwork}, nil
		}
		return caller, err
	}
}

// down is an engine that does not decide.
type down struct{}

func (down) Take(context.Context, string, *ratelimit.Plan, int64) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, errAway
}

// transcript runs the scenario with s and returns what was seen. With that of other it must
// be equal.
func (sc *scenario) transcript(t *testing.T, s, other Service) string {
	t.Helper()
	var log Log
	clock := NewClock()
	clock.Advance(time.Second / 2)
	engine := clock.Engine(t)
	chain := Chain{Limits: []Limit{sc.limit(s, engine, &log)}, Handle: sc.handler(t, engine, &log)}
	if sc.nested {
		outer := Limit{Engine: engine, Identify: Caller(ratelimit.Caller{Subject: "ann", Plan: wide}), Options: limit.Options{Name: "wide", Headers: both}}
		chain.Limits = append([]Limit{outer}, chain.Limits...)
	}
	if sc.tokens != nil {
		chain.Auth = authenticator(t, chain.Limits[0].Options.Errors)
	}
	send := s.Start(t, chain)
	for i, text := range strings.Fields(sc.requests) {
		r := Request{Method: http.MethodGet, Text: text, Authorization: []string{}}
		if text == http.MethodHead {
			r.Method, r.Text = text, "ok"
		}
		if sc.tokens != nil && sc.tokens[i] != "" {
			for token := range strings.SplitSeq(sc.tokens[i], ",") {
				r.Authorization = append(r.Authorization, "Bearer "+token)
			}
		}
		before := log.String()
		a := send(r)
		refused := !strings.Contains(strings.TrimPrefix(log.String(), before), "the handler")
		_, _ = fmt.Fprintf(&log, "%s: %s, then %s\n", text, sc.seen(a, s, other, refused), sc.used(t, engine))
	}
	return log.String()
}

func (sc *scenario) limit(s Service, engine ratelimit.Limiter, log *Log) Limit {
	l := Limit{Engine: engine, Identify: sc.identify(s.Native), Options: sc.options, Refund: sc.refund}
	if sc.down {
		l.Engine = down{}
	}
	errs := apierror.Responder{}
	if l.Options.Errors != nil {
		errs = *l.Options.Errors
	}
	errs.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if slices.Contains([]string{slog.TimeKey, "method", "route"}, a.Key) || sc.native() && a.Key == "error" {
			return slog.Attr{}
		}
		return a
	}}))
	l.Options.Errors = &errs
	l.Options.Observe = func(_ *http.Request, c ratelimit.Caller, d ratelimit.Decision, err error) {
		if sc.native() && err != nil {
			err = ratelimit.ErrUnavailable // the text is that of the framework
		}
		plan := "no plan"
		if c.Plan != nil {
			plan = c.Plan.Name()
		}
		_, _ = fmt.Fprintf(log, "Observe: %s, %s, %v, cost %d, %v\n", c.Subject, plan, d.Outcome, d.Cost, err)
	}
	return l
}

// handler notes what the handler sees, and does what the text says.
func (sc *scenario) handler(t *testing.T, engine *memory.Limiter, log *Log) func(context.Context, string) int {
	return func(ctx context.Context, text string) int {
		reserved := limit.FromContext(ctx)
		_, _ = fmt.Fprintf(log, "the handler: %s, a settlement of %q, %s\n", text, reserved.Caller().Subject, sc.used(t, engine))
		if strings.HasPrefix(text, "settle") {
			_, _ = fmt.Fprintln(log, "Settle:", reserved.Settle(ctx, 2))
		}
		switch {
		case text == "panic":
			panic("no")
		case text == "notfound":
			return http.StatusNotFound
		case text == "unavailable":
			return http.StatusServiceUnavailable
		case strings.HasSuffix(text, "internal"):
			return http.StatusInternalServerError
		}
		return http.StatusOK
	}
}

// seen is what the client of s sees.
func (sc *scenario) seen(a Answer, s, other Service, refused bool) string {
	var lines []string
	shadowed := sc.options.Shadow && other.RPC && !s.RPC // has no fields there
	for name, values := range a.Header {
		if sc.wall && (name == "X-Ratelimit-Reset" || name == "Retry-After") {
			values = nil
		}
		limits := strings.HasPrefix(name, "X-Ratelimit-") || strings.HasPrefix(name, "Ratelimit") || name == "Retry-After" || name == "Www-Authenticate"
		if limits && !shadowed || refused && !other.RPC && !sc.native() && name != "Date" {
			lines = append(lines, fmt.Sprint(name, values))
		}
	}
	slices.Sort(lines)
	if wait := (a.Wait + time.Second - 1).Truncate(time.Second); sc.wall {
		lines = append(lines, fmt.Sprint("a wait: ", wait > 0))
	} else {
		lines = append(lines, fmt.Sprint("a wait of ", wait))
	}
	switch {
	case !refused || sc.err == errNative:
	case other.RPC:
		lines = append(lines, a.Code(), a.Message())
	default:
		lines = append(lines, a.Body)
	}
	return fmt.Sprint(a.Status, " ", lines)
}

// used is what the engine has counted.
func (sc *scenario) used(t *testing.T, engine *memory.Limiter) string {
	subject := "ann"
	if sc.options.Name != "" {
		subject = sc.options.Name + "/ann"
	}
	return fmt.Sprintf("%d, %d and %d used", Used(t, engine, subject, wide), Used(t, engine, "all", wide), Used(t, engine, "network:127.0.0.1", wide))
}

type noKeys struct{}

func (noKeys) Lookup(context.Context, apikey.Digest) (apikey.Record[apikey.Principal], error) {
	return apikey.Record[apikey.Principal]{}, apikey.ErrUnknown
}

func authenticator(t *testing.T, errs *apierror.Responder) *bearer.Authenticator[string] {
	t.Helper()
	guesses := ratelimit.MustPlan("guesses", ratelimit.Penalty{}, ratelimit.Quota{Limit: 1, Window: 8784 * time.Hour})
	v, err := apikey.NewVerifier(nil, noKeys{}, apikey.Options{Guesses: guesses})
	testcheck.NoError(t, err)
	a, err := bearer.New("test", func(ctx context.Context, token string) (string, error) {
		switch token {
		case "ann":
			return token, nil
		case "down":
			return "", errDial
		case "eve":
			return "", bearer.ErrInvalid
		}
		_, err := v.Verify(ctx, token) // finds the network of the client
		return "", err
	}, bearer.Options{Errors: errs, Observe: func(r *http.Request, _ bearer.Outcome, _ error) {
		if !clientip.FromRemoteAddr().Addr(r).IsLoopback() || r.Header.Get("User-Agent") == "" {
			t.Errorf("Observe of the authentication gets %+v", r)
		}
	}})
	testcheck.NoError(t, err)
	return a
}
