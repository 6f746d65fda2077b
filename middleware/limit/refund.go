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

	// disconnectWait is how long net/http has to cancel the context after a write has failed.
	disconnectWait = 10 * time.Millisecond
)

// serveTracked serves a request that was charged, and gives the charge back if the
// options say so of its end.
func (g *limitHandler) serveTracked(w http.ResponseWriter, r *http.Request, c ratelimit.Caller, d ratelimit.Decision, all charged) {
	t, body, ctx := response.Track(w), watchBody(r), r.Context()
	var settling *settlementContext
	if g.Settle {
		settling = g.settle(ctx, c, d, all, true)
		defer settling.settlement.release(ctx)
		ctx = settling
	}
	returned := false
	defer func() {
		if g.ChargeIf(r, finalStatus(t, returned)) || abandoned(r.Context(), body, t) {
			return
		}
		if settling == nil {
			settling = g.settle(r.Context(), c, d, all, true)
			settling.settlement.hidden = true
		}
		settling.settlement.refund(r.Context())
	}()
	if body == nil && settling == nil {
		g.next.ServeHTTP(t, r)
	} else {
		inner := r.WithContext(ctx)
		if body != nil {
			inner.Body = body
		}
		response.ServeCopy(g.next, t, r, inner)
	}
	returned = true
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
// as the handler could notice, or its body could not be read. A deadline is set by the service.
// Over HTTP/2 a write fails a moment before net/http cancels the context.
func abandoned(ctx context.Context, body *watchedBody, t *response.Tracker) bool {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return true
	case body != nil && (body.broken.Load() || body.reads.Load() > 0):
		return true
	case !t.Failed():
		return false
	}
	select {
	case <-ctx.Done():
		return errors.Is(ctx.Err(), context.Canceled)
	case <-time.After(disconnectWait):
		return false
	}
}

// watchedBody is the body of a request that knows whether reading it has failed.
type watchedBody struct {
	io.ReadCloser
	reads  atomic.Int32 // that wait for the client
	broken atomic.Bool  // a Read has failed, or waited for the client until Close
	closed atomic.Bool
}

// watchBody returns the body of r, or nil if it has none.
func watchBody(r *http.Request) *watchedBody {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	return &watchedBody{ReadCloser: r.Body}
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.reads.Add(1)
	defer b.reads.Add(-1)
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && !b.closed.Load() && !errors.Is(err, http.ErrBodyReadAfterClose) {
		b.broken.Store(true)
	}
	return n, err
}

func (b *watchedBody) Close() error {
	if b.reads.Load() > 0 {
		b.broken.Store(true)
	}
	b.closed.Store(true)
	return b.ReadCloser.Close()
}
