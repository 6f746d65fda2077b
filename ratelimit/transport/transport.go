// Package transport keeps an HTTP client inside the limits of the services that it
// calls:
//
//	limits, err := transport.New(transport.Options{})
//	...
//	client := &http.Client{Transport: limits}
//
// After a 429 with "Retry-After: 17" the client sends nothing for 17 seconds, and then
// the request again:
//
//	the server answers                            the request, and others of its key
//	429, 403 or 503 with Retry-After              wait that long
//	429 or 403 without it, a quota exhausted      wait until its reset
//	429 without it, some left of each quota       wait a minute
//	any other 429                                 wait 1s, 2s, 4s, ... up to a minute
//	any status, a quota exhausted                 the next ones wait until its reset
//	a ban, or a wait longer than Options.MaxWait  fail immediately with a LimitError
//
// So a caller never sees a 429. It gets the response to a later attempt, or a [LimitError] that
// says until when to wait, also immediately if the deadline of its context is earlier.
//
// Quotas are read from X-RateLimit-Remaining and -Reset, and from RateLimit of
// draft-ietf-httpapi-ratelimit-headers-11, also if r and t are called a and w. Reset is a Unix
// time, also in milliseconds, or a number of seconds. Times are compared with the Date of the
// response, not with this clock.
//
// A ban is a 429 with X-RateLimit-Banned, or with an envelope of package apierror or problem
// details that says so.
//
// All requests of a key, by default a host and its credentials, share one pause or ban. In a
// long one a request is sent every 15 minutes, and its response replaces what was known. If
// none was refused yet, the first is sent after a minute: the service may have given units
// back. A random time is added to each wait, up to a tenth of it, twice that after a second
// denial and so on up to 30 seconds. So not all processes return at the same instant.
//
// # What is sent again
//
// A request that was refused by a limit was not processed, and is sent again whatever
// its method, if its body can be: http.NewRequest sets GetBody for the usual readers.
// After a 503 it must also be idempotent, by its method (QUERY of RFC 10008 is) or with an
// Idempotency-Key; otherwise the caller gets the 503. Other failures are not retried.
//
// # A plan of the client's own
//
// With Options.Plan the client stays within a plan before it sends anything:
//
//	limits, err := transport.New(transport.Options{
//		Plan:    ratelimit.MustPlan("github", ratelimit.Penalty{}, ratelimit.PerHour(5000)),
//		Limiter: limiter, // of ratelimit/memory, or a shared one for several processes
//	})
//
// # Deprecations
//
// Deprecation and Sunset fields in responses are reported once each, in the log or to
// Options.OnDeprecated.
package transport

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/internal/nilvalue"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// A Transport is an [http.RoundTripper] that keeps a client inside its limits. It is
// made by [New] and safe for concurrent use.
type Transport struct {
	base     http.RoundTripper
	key      func(*http.Request) string
	maxWait  time.Duration
	random   func(most time.Duration) time.Duration // from 0 to most
	plan     *ratelimit.Plan                        // nil: none
	limiter  ratelimit.Limiter
	waiter   *ratelimit.Waiter
	adjuster engine.Adjuster // nil: the limiter is none

	states  states
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
		random:  func(most time.Duration) time.Duration { return rand.N(most + 1) },
		plan:    opts.Plan,
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

// RoundTrip sends the request, when it may be sent, and returns the response. The server
// refuses a request with 429, with 403 and fields that name a limit, or with 503 and
// Retry-After. RoundTrip then waits and sends the request again, or returns a [*LimitError]:
// a caller sees the same error whether the request was refused or not sent at all. This differs
// from what [http.RoundTripper] asks for. Of such responses it returns only a 503 to a request
// that must not be sent again.
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

// defaultMaxWait is long enough for a window of a minute and most of a second one.
const defaultMaxWait = 2 * time.Minute

// Options are optional settings. The zero value works.
type Options struct {
	// Base sends the requests. Nil: http.DefaultTransport.
	Base http.RoundTripper

	// Key names what the server counts a request for. Requests of one key share
	// pauses and the Plan. Requests with an empty key are sent as if there were no
	// Transport. Nil: the host and, as a digest, the Authorization field. A service needs a
	// Key if it identifies clients in another way, has limits of their own for some operations,
	// such as searches, or has requests of unlike cost. Key tells these requests apart. It must
	// be safe for concurrent use.
	Key func(r *http.Request) string

	// MaxWait is how long a request waits at most, over all its attempts. A request fails
	// immediately if the wait that the server names, and a tenth of it for the random time that
	// is added, are longer. 0: 2 minutes. Negative: requests never wait.
	MaxWait time.Duration

	// Plan is a plan of the client's own, which holds before a request is sent;
	// Limiter counts it. Every attempt costs one unit. Requests wait for their turn in
	// the order in which they arrive. Usually it is the plan that the client has at
	// the server; it must have quotas. Set it if a quota there is smooth: without it, a client that
	// has used the burst waits until all of it is back. The subject is "call:" and the key. Set
	// both Plan and Limiter, or neither.
	Plan    *ratelimit.Plan
	Limiter ratelimit.Limiter

	// OnDeprecated is called with the first response to a method and host that has
	// this notice of a deprecation. At most 1000 notices are reported. What is
	// malformed in a notice is left out, and targets of links have no password and no
	// query of the request. Nil: a warning in the log of [slog.Default].
	// OnDeprecated must be safe for concurrent use.
	OnDeprecated func(r *http.Request, n deprecation.Notice)
}

func (o *Options) validate() error {
	switch {
	case o.Base != nil && nilvalue.In(o.Base):
		return fmt.Errorf("transport: Options.Base must not be a nil %T", o.Base)
	case o.Plan != nil && nilvalue.InEngine(o.Limiter):
		return errors.New("transport: Options.Plan needs Options.Limiter, which counts it, got nil or the zero memory.Limiter")
	case o.Plan == nil && o.Limiter != nil:
		return errors.New("transport: Options.Limiter needs Options.Plan")
	case o.Plan != nil && engine.Of(o.Plan).Len() == 0:
		return errors.New("transport: Options.Plan must have quotas")
	}
	return nil
}

// defaultKey returns the host and a digest of the credentials.
func defaultKey(r *http.Request) string {
	credentials := r.Header.Get("Authorization")
	if credentials == "" {
		return r.URL.Host
	}
	digest := sha256.Sum256([]byte(credentials))
	return r.URL.Host + " " + hex.EncodeToString(digest[:8])
}
