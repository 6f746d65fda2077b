package limit

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/internal/response"
	"github.com/animalstore/gatehouse/ratelimit"
)

const (
	// refundTimeout bounds a refund, which is made before the end of the response.
	refundTimeout = 500 * time.Millisecond

	// maxUnread is how much of a body that the handler did not read is read before a
	// refund. net/http reads as much before it sends the response.
	maxUnread = 256 << 10

	// disconnectWait is how long net/http has to notice that the client has
	// disconnected after the body was read. It reads the connection at once, in a
	// goroutine that needs this time to be scheduled.
	disconnectWait = 10 * time.Millisecond
)

// serveTracked serves a request that was charged, and gives the charge back if the
// options say so of its end.
func (g *limitHandler) serveTracked(w http.ResponseWriter, r *http.Request, c ratelimit.Caller, d ratelimit.Decision, all *charged) {
	t := response.Track(w)
	body := watchBody(r)
	var reserved *reservedContext
	if g.Context {
		reserved = g.reserve(r.Context(), c, d, all, true)
	}
	returned := false
	defer func() {
		if g.ChargeIf(r, finalStatus(t, returned)) || g.abandoned(r, body, t) {
			return
		}
		if reserved == nil {
			reserved = g.reserve(r.Context(), c, d, all, true)
			reserved.reservation.hidden = true
		}
		reserved.reservation.refund(r.Context())
	}()
	if body == nil && reserved == nil {
		g.next.ServeHTTP(t, r)
	} else {
		response.ServeCopy(g.next, t, r, innerRequest(r, body, reserved))
	}
	returned = true
}

// innerRequest returns a copy of r with the body and the context that are not nil.
func innerRequest(r *http.Request, body *watchedBody, reserved *reservedContext) *http.Request {
	ctx := r.Context()
	if reserved != nil {
		ctx = reserved
	}
	inner := r.WithContext(ctx)
	if body != nil {
		inner.Body = body
	}
	return inner
}

// finalStatus returns the status of a response. If the handler did not return, it panicked.
func finalStatus(t *response.Tracker, returned bool) int {
	switch status := t.Status(); {
	case !returned && status != http.StatusSwitchingProtocols:
		return http.StatusInternalServerError // as a recovery outside sends it
	case status == 0:
		return http.StatusOK // as net/http sends it
	default:
		return status
	}
}

// abandoned reports whether the client disconnected before the end of the request, as far
// as net/http can tell, or its body could not be read. A deadline is set by the service.
// With full duplex net/http sends a short response before it reads the rest of the body,
// and the client may wait for it: a body that the handler has not read counts as abandoned.
// Over HTTP/2 a write fails a moment before net/http cancels the context.
func (g *limitHandler) abandoned(r *http.Request, body *watchedBody, t *response.Tracker) bool {
	ctx := r.Context()
	unread := body != nil && body.http1 && (!body.ended.Load() || body.drained.Load())
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return true
	case body != nil && (body.broken.Load() || body.reads.Load() > 0):
		return true
	case unread && (t.FullDuplex() || !body.drain()):
		return true
	case !unread && !t.Failed():
		return false
	}
	select {
	case <-ctx.Done():
		return errors.Is(ctx.Err(), context.Canceled)
	case <-time.After(g.disconnectWait):
		return false
	}
}

// watchedBody is the body of a request that knows whether reading it has failed, and
// whether it was read to its end. Over HTTP/1 net/http notices only from then on that the
// client has disconnected.
type watchedBody struct {
	io.ReadCloser
	http1     bool
	expecting bool // the client waits for 100 Continue, which the first Read sends
	read      atomic.Bool
	reads     atomic.Int32 // that wait for the client
	broken    atomic.Bool  // a Read has failed, or waited for the client until Close
	ended     atomic.Bool
	drained   atomic.Bool // the end came because drain read on
	closed    atomic.Bool
}

// watchBody returns the body of r, or nil if it has none.
func watchBody(r *http.Request) *watchedBody {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	return &watchedBody{ReadCloser: r.Body, http1: r.ProtoMajor == 1, expecting: r.Header.Get("Expect") != ""}
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.read.Store(true)
	b.reads.Add(1)
	defer b.reads.Add(-1)
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == io.EOF:
		b.ended.Store(true)
	case err != nil && !b.closed.Load() && !errors.Is(err, http.ErrBodyReadAfterClose):
		b.broken.Store(true)
	}
	return n, err
}

// Close reads the rest over HTTP/1, as net/http would, to see whether it arrives.
func (b *watchedBody) Close() error {
	switch {
	case b.reads.Load() > 0:
		b.broken.Store(true)
	case b.http1:
		b.drain()
	}
	b.closed.Store(true)
	return b.ReadCloser.Close()
}

// drain reads the rest of the body and reports whether that brought its end. It
// does not ask a client that waits for 100 Continue to send its body.
func (b *watchedBody) drain() bool {
	if b.ended.Load() {
		return true
	}
	if b.closed.Load() || b.expecting && !b.read.Load() {
		return false
	}
	b.drained.Store(true)
	_, err := io.CopyN(io.Discard, b, maxUnread+1)
	// If a response was flushed, net/http has read and closed the body itself,
	// which it does only at the end.
	return err == io.EOF || errors.Is(err, http.ErrBodyReadAfterClose)
}
