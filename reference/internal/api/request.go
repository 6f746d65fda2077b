package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// requestInfo is what the middlewares share about one request.
type requestInfo struct {
	route   route
	network string  // subject of the client without a key
	proxied error   // why network is a proxy's; nil: it is the client's
	peeked  *peeked // what is left, if the request is not charged; nil: the limiter failed
}

type requestInfoKey struct{}

// requestInfoOf returns what addInfo has added to a request.
func requestInfoOf(ctx context.Context) *requestInfo {
	info, _ := ctx.Value(requestInfoKey{}).(*requestInfo)
	return info
}

// addInfo is a middleware that adds the route and the network of a request.
func (a *api) addInfo(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		addr, err := a.client.Resolve(r)
		info := &requestInfo{route: a.routeOf(r), network: clientip.NetworkSubject(addr), proxied: err}
		logInfo(r, info)
		r.Pattern = info.route.pattern // for handlers around the API; the mux sets it on the copy
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestInfoKey{}, info)))
	})
}

// logInfo adds the route and the network to the log line of a request. The network is
// the one under which the client is counted if it has no valid key. If it is the network of
// a proxy that did not name its client, network_of says why.
func logInfo(r *http.Request, info *requestInfo) {
	middleware.SetLogAttrs(r.Context(),
		slog.String("route", info.route.pattern),
		slog.String("network", strings.TrimPrefix(info.network, "network:")))
	switch {
	case info.proxied == nil:
	case errors.Is(info.proxied, clientip.ErrAbsent):
		middleware.SetLogAttrs(r.Context(), slog.String("network_of", "proxy: it sent no header with the client's address"))
	default:
		middleware.SetLogAttrs(r.Context(), slog.String("network_of", "proxy: its header with the client's address is unreadable"))
	}
}

// The outcomes in the log, beside those of [ratelimit.Outcome].
const (
	uncharged = "uncharged" // not charged, and within the quota of such requests
	undecided = "undecided" // the limiter failed
)

// logDecision adds what the limiter decided to the log line of a request.
func logDecision(r *http.Request, c ratelimit.Caller, d ratelimit.Decision, outcome string) {
	var buf [4]slog.Attr
	attrs := append(buf[:0], slog.String("plan", c.Plan.Name()), slog.String("outcome", outcome))
	if outcome != undecided && engine.Of(d.Plan).Len() > 0 {
		attrs = append(attrs, slog.Int64("remaining", d.Remaining()))
	}
	if p, ok := bearer.FromContext[apikey.Principal](r.Context()); ok {
		attrs = append(attrs, slog.String("key", p.KeyID))
	}
	middleware.SetLogAttrs(r.Context(), attrs...)
}

// observe logs a decision about a request that is charged, and reports it.
func (a *api) observe(r *http.Request, c ratelimit.Caller, d ratelimit.Decision, err error) {
	logDecision(r, c, d, outcomeOf(d, err))
	a.OnDecision(r, c, d, err)
}

// observeUncharged logs a decision about a request that is not charged.
func observeUncharged(r *http.Request, c ratelimit.Caller, d ratelimit.Decision, err error) {
	outcome := outcomeOf(d, err)
	if err == nil && d.Allowed() {
		outcome = uncharged
	}
	logDecision(r, c, d, outcome)
}

func outcomeOf(d ratelimit.Decision, err error) string {
	if err != nil {
		return undecided
	}
	return d.Outcome.String()
}
