package rpclimit

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/ratelimit"
)

// A Call is a call that the middleware of package limit decides and serves: the context of
// its request, and the writer of its response.
type Call struct {
	context.Context // of the call

	Fields  http.Header   // for the client, with the names of package limit; may be empty
	Denial  *Denial       // nil: the call was served
	Request *http.Request // what the handler gets: its context may have a settlement

	serve    func(*Call) (Code, error)
	decision ratelimit.Decision
	denied   bool // by the decision
	ended    bool // the call ended before it was decided
	code     Code // how the handler ended
	err      error

	// OneMessage says that the method is a stream that takes one message of the client.
	OneMessage bool

	received  atomic.Int32 // messages
	receiving atomic.Int32 // calls of Receive that wait for the client
	broken    atomic.Bool  // a message is missing, or could not be received or sent
}

// Serve decides a call, a request of [Request], and serves it, or leaves a Denial in the
// Call. serve gets the Call with its Fields and its Request, and returns the error of the
// handler and its code.
func (g *Gate) Serve(r *http.Request, serve func(*Call) (Code, error)) *Call {
	c := &Call{Context: r.Context(), Fields: make(http.Header, 4), serve: serve}
	g.limited.ServeHTTP(c, r.WithContext(c))
	return c
}

type callKey struct{}

// Value is part of [context.Context].
func (c *Call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

func callOf(r *http.Request) *Call { return r.Context().Value(callKey{}).(*Call) }

// Claim returns the fields, and takes fields of the same names from limits further out, as the
// inner one of two middlewares replaces a header. Metadata would have both.
func (c *Call) Claim() http.Header {
	for outer, ok := c.Context.Value(callKey{}).(*Call); ok; outer, ok = outer.Context.Value(callKey{}).(*Call) {
		for name := range c.Fields {
			delete(outer.Fields, name)
		}
	}
	return c.Fields
}

// Header is part of [http.ResponseWriter].
func (c *Call) Header() http.Header { return c.Fields }

// WriteHeader is part of [http.ResponseWriter].
func (c *Call) WriteHeader(int) {}

// Write is part of [http.ResponseWriter]. A call has no body: see Gate.refuse.
func (c *Call) Write(p []byte) (int, error) { return len(p), nil }

// identified calls the function of the service. An error in the form of the framework is the
// answer to the call, and the middleware gets another one, which it does not log. An error that
// wraps ratelimit.ErrUnavailable is one of the engine, whatever else it wraps.
func (g *Gate) identified(r *http.Request) (ratelimit.Caller, error) {
	caller, err := g.identify(r)
	if err != nil && g.native(err) && !errors.Is(err, ratelimit.ErrUnavailable) {
		callOf(r).Denial = &Denial{Native: err}
		err = errNative
	}
	return caller, err
}

var errNative = apierror.New(http.StatusBadRequest, "invalid_request", "")

// observe notes the decision. A call that its client or the deadline of the client has ended
// is no failure of the engine.
func (g *Gate) observe(r *http.Request, caller ratelimit.Caller, d ratelimit.Decision, err error) {
	c := callOf(r)
	c.decision, c.denied = d, err == nil && !d.Allowed()
	c.ended = err != nil && c.Err() != nil && errors.Is(err, c.Err())
	if g.Observe != nil && !c.ended {
		g.Observe(r, caller, d, err)
	}
}

// next is the handler inside the middleware.
func (g *Gate) next(_ http.ResponseWriter, r *http.Request) {
	c := callOf(r)
	if c.ended && !g.Shadow {
		c.Denial = FromError(errEnded)
		return
	}
	if g.Shadow {
		c.Denial = nil
		clear(c.Fields)
	}
	c.Request = r
	c.code, c.err = Internal, g.panicked
	c.code, c.err = c.serve(c)
}

// errEnded answers a call that has ended, so that its client does not see it.
var errEnded = apierror.New(http.StatusGatewayTimeout, "gateway_timeout", "The call ended before it was counted.")

// refuse is the Write of the middleware's Responder.
func (g *Gate) refuse(w http.ResponseWriter, r *http.Request, e *apierror.Error) {
	w.WriteHeader(e.Status) // so that the Responder writes no body
	c := callOf(r)
	delete(c.Fields, "Cache-Control")
	delete(c.Fields, "X-Content-Type-Options")
	if c.Denial == nil {
		c.Denial = c.denialOf(e)
	}
}

// Receive receives a message of the client.
func (c *Call) Receive(receive func() error) error {
	c.receiving.Add(1)
	err := receive()
	c.receiving.Add(-1)
	switch {
	case err == nil:
		if c.received.Add(1) > 1 && c.OneMessage {
			c.broken.Store(true)
		}
	case !errors.Is(err, io.EOF) || c.received.Load() == 0:
		c.broken.Store(true)
	}
	return err
}

// Sent notes whether a message could be sent, and returns err.
func (c *Call) Sent(err error) error {
	if err != nil {
		c.broken.Store(true)
	}
	return err
}

// chargeIf reports whether a call stays charged. What the client can cause does. A call that
// is cancelled does by package limit. What the handler does at the deadline, which the client
// sets, may come a moment before the context ends. A handler that returns while a Receive
// waits has given up waiting for the client.
func (g *Gate) chargeIf(r *http.Request, _ int) bool {
	c := callOf(r)
	end, deadline := c.Deadline()
	switch {
	case c.broken.Load(), c.receiving.Load() > 0, c.code == DeadlineExceeded, deadline && !time.Now().Before(end):
		return true
	}
	return g.ChargeIf(c.Request, c.err)
}
