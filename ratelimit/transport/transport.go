package transport

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// A Transport is an [http.RoundTripper] that keeps a client inside its limits. It is
// made by [New] and safe for concurrent use.
type Transport struct {
	base     http.RoundTripper
	key      func(*http.Request) string
	maxWait  time.Duration
	jitter   time.Duration
	plan     *ratelimit.Plan // nil: none
	limiter  ratelimit.Limiter
	waiter   *ratelimit.Waiter
	adjuster engine.Adjuster // nil: the limiter is none
	onWait   func(*http.Request, time.Duration)

	pauses  pauses
	notices notices
}

// New returns a Transport. An error names the option that is wrong.
func New(opts Options) (*Transport, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	t := &Transport{
		base:    opts.Base,
		key:     opts.Key,
		maxWait: max(cmp.Or(opts.MaxWait, defaultMaxWait), 0),
		jitter:  opts.Jitter,
		plan:    opts.Plan,
		onWait:  opts.OnWait,
		notices: notices{report: opts.OnDeprecated},
	}
	if t.base == nil {
		t.base = http.DefaultTransport
	}
	if t.key == nil {
		t.key = defaultKey
	}
	if t.notices.report == nil {
		t.notices.report = logNotice
	}
	if t.plan != nil {
		t.limiter = opts.Limiter
		t.waiter = ratelimit.NewWaiter(opts.Limiter)
		t.adjuster, _ = opts.Limiter.(engine.Adjuster)
	}
	return t, nil
}

// RoundTrip sends the request, when it may be sent, and returns the response. If the
// server refuses it with 429, or with 403 and fields that name a limit, RoundTrip waits
// and sends it again, or returns a [*LimitError]: it never returns such a response, so
// that a caller sees the same error whether the request was refused or not sent at all.
// This differs from what [http.RoundTripper] asks for.
//
// RoundTrip reads up to 72 KiB of the body of a refusal. MaxWait does not limit the time
// that this takes: give requests a deadline.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL == nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, errors.New("transport: nil Request.URL")
	}
	key := t.key(r)
	if key == "" {
		return t.base.RoundTrip(r)
	}
	return (&call{Transport: t, request: r, key: key}).do()
}

// CloseIdleConnections closes the idle connections of Options.Base, if it can.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
