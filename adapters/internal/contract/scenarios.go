package contract

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

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

type noKeys struct{}

func (noKeys) Lookup(context.Context, apikey.Digest) (apikey.Record[apikey.Principal], error) {
	return apikey.Record[apikey.Principal]{}, apikey.ErrUnknown
}

func authenticator(t *testing.T, errs *apierror.Responder) *bearer.Authenticator[string] {
	t.Helper()
	guesses := ratelimit.MustPlan("guesses", ratelimit.Penalty{}, ratelimit.Quota{Limit: 1, Window: 8784 * time.Hour})
	v, err := apikey.NewVerifier(nil, noKeys{}, apikey.Options{Guesses: guesses})
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	return a
}
