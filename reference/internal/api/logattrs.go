package api

import (
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

// logInfo adds the route and the network to the log line of a request. The network is
// the one under which the client is counted if it has no valid key. If it is that of
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
	denied    = "denied"    // by Config.Deny; the limiter was not asked
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

// observe logs a decision about a request that is charged, and reports it as one about
// the owner, also if the limits of its key have decided.
func (a *api) observe(r *http.Request, c ratelimit.Caller, d ratelimit.Decision, err error) {
	if len(c.Also) > 0 {
		p, _ := bearer.FromContext[apikey.Principal](r.Context())
		c = ownerOf(p)
	}
	logOutcome(r, c, d, err)
	a.OnDecision(r, c, d, err)
}

// observeUncharged logs a decision about a request that is not charged.
func observeUncharged(r *http.Request, c ratelimit.Caller, d ratelimit.Decision, err error) {
	if err == nil && d.Allowed() {
		logDecision(r, c, d, uncharged)
		return
	}
	logOutcome(r, c, d, err)
}

func logOutcome(r *http.Request, c ratelimit.Caller, d ratelimit.Decision, err error) {
	if err != nil {
		logDecision(r, c, d, undecided)
		return
	}
	logDecision(r, c, d, d.Outcome.String())
}
