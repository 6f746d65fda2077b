package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/internal/response"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/ratelimit"
)

// logFields are the fields of the log line that the gate finds out. The line is written
// outside of the gate.
type logFields struct {
	outcome   string // allowed, limited, banned, uncharged, undecided; "" if not counted
	key       string // ID of the key
	plan      string // name of the plan that the request was counted under
	remaining int64  // of the applicable quota, unless undecided
}

// setLogFields records the decision of the limiter for the log line.
func setLogFields(r *http.Request, c ratelimit.Caller, d ratelimit.Decision, outcome string) {
	n := &requestInfoOf(r.Context()).logFields
	n.outcome, n.plan = outcome, c.Plan.Name()
	if outcome != undecided {
		n.remaining = d.Remaining()
	}
	if p, ok := bearer.FromContext[apikey.Principal](r.Context()); ok {
		n.key = p.KeyID
	}
}

// observe records a decision for the log.
func observe(r *http.Request, c ratelimit.Caller, d ratelimit.Decision, err error) {
	outcome := d.Outcome.String()
	if err != nil {
		outcome = undecided
	}
	setLogFields(r, c, d, outcome)
}

// undecided is the outcome of a request that the limiter failed to decide.
const undecided = "undecided"

// observeUncharged does the same for a request that is not charged.
func observeUncharged(r *http.Request, c ratelimit.Caller, d ratelimit.Decision, err error) {
	switch {
	case err != nil:
		setLogFields(r, c, d, undecided)
	case d.Allowed():
		setLogFields(r, c, d, "uncharged")
	default:
		setLogFields(r, c, d, d.Outcome.String())
	}
}

// logRequests writes one line for each request. It has the route instead of the
// target, and no header field of the request, since both can contain keys.
//
// The network is the one that the client is counted under if it has no valid key. If
// it is the network of a proxy that did not name its client, network_of says why.
func (a *api) logRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if !a.Logger.Enabled(ctx, slog.LevelInfo) {
			next.ServeHTTP(w, r)
			return
		}
		begin := a.Now()
		v := requestInfoOf(ctx)
		n := &v.logFields
		t := response.Track(w)
		aborted := true
		defer func() { // also if the response is aborted by a panic
			attrs := make([]slog.Attr, 0, 15)
			attrs = append(attrs,
				slog.String("request_id", middleware.RequestIDFrom(ctx)),
				slog.String("method", knownMethod(r.Method)),
				slog.String("route", v.route.pattern),
				slog.Int("status", t.Status()),
				slog.Int64("bytes", t.Bytes()),
				slog.Float64("duration_ms", milliseconds(a.Now().Sub(begin))),
				slog.String("network", strings.TrimPrefix(v.network, "network:")),
			)
			if reason := proxyReason(v.proxied); reason != "" {
				attrs = append(attrs, slog.String("network_of", reason))
			}
			for _, attr := range []slog.Attr{
				slog.String("key", n.key), slog.String("plan", n.plan), slog.String("outcome", n.outcome),
			} {
				if attr.Value.String() != "" {
					attrs = append(attrs, attr)
				}
			}
			if n.outcome != "" && n.outcome != undecided {
				attrs = append(attrs, slog.Int64("remaining", n.remaining))
			}
			if aborted {
				attrs = append(attrs, slog.Bool("aborted", true))
			}
			// net/http ends the context once the handler is done, or when the client
			// disconnects. Such a request fails wherever it was, often with 500.
			if errors.Is(ctx.Err(), context.Canceled) {
				attrs = append(attrs, slog.Bool("abandoned", true))
			}
			// Logger.LogAttrs would look up the line of this call, which no log shows.
			line := slog.NewRecord(time.Now(), slog.LevelInfo, "request", 0)
			line.AddAttrs(attrs...)
			_ = a.Logger.Handler().Handle(ctx, line) // as Logger does: there is nowhere to report it
		}()
		next.ServeHTTP(t, r)
		aborted = false
	})
}

// milliseconds returns d with its microseconds as decimals. It is a
// number, so that it can be summed; other durations in the log are texts like 5s.
func milliseconds(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000
}

// proxyReason says why a request counts for a proxy, without what the proxy sent.
func proxyReason(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, clientip.ErrAbsent):
		return "proxy: it sent no header with the client's address"
	default:
		return "proxy: its header with the client's address is unreadable"
	}
}

// knownMethod keeps what a client makes up out of the log.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return method
	default:
		return "other"
	}
}
