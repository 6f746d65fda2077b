package limit

import (
	"context"
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// valuesPerNetwork is how many times the quotas of one value a network may use.
const valuesPerNetwork = 10

// ByHeader limits each value of a header field, such as an API key that a handler further
// in verifies. Any client can send any value. Therefore the values that one network sends
// may together use ten times the quotas, so that a client which sends a new value with
// each request does not escape them. A request that either limit denies is charged to
// neither. Without the header, a request counts for the client's network as with [ByIP],
// under the quotas as they are.
//
// A client that knows another's value can use up its quota: use a field that holds a
// secret. If something in front of the service has verified the field, as a gateway does,
// read it with [ByUser], which has no limit on networks. Of several lines with the field,
// the first one counts.
//
// It panics if name is not a field name, if the field holds the client's address (use
// [Behind], or Clients{Source: source} with clientip.FromHeader), if net/http removes the
// field from requests (Host), or if the quotas are not those of a plan.
func ByHeader(name string, quotas ...ratelimit.Quota) func(http.Handler) http.Handler {
	return Clients{}.ByHeader(name, quotas...)
}

// ByHeader is the function [ByHeader] for these clients.
func (c Clients) ByHeader(name string, quotas ...ratelimit.Quota) func(http.Handler) http.Handler {
	field := mustField(name)
	plan := mustPlan("limit.ByHeader", quotas)
	network := c.networks()
	return newMiddleware(newValues(plan), func(r *http.Request) (ratelimit.Caller, error) {
		subject := network(r)
		if lines := r.Header[field]; len(lines) > 0 && lines[0] != "" {
			subject = "header:" + lines[0] + string(separator) + subject
		}
		return ratelimit.Caller{Subject: subject, Plan: plan}, nil
	})
}

// separator stands between a value and the network that sent it. No network has it.
const separator = '\n'

// values is a Limiter that counts both parts of a subject, or the network alone.
type values struct {
	engine   *memory.Limiter
	networks *ratelimit.Plan // what all values of a network may use
}

func newValues(plan *ratelimit.Plan) values {
	quotas := plan.Quotas()
	for i := range quotas {
		quotas[i].Limit = min(quotas[i].Limit*valuesPerNetwork, ratelimit.MaxLimit)
	}
	return values{newEngine(), mustPlan("limit.ByHeader", quotas)}
}

func (v values) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	i := strings.LastIndexByte(subject, separator)
	if i < 0 {
		return v.engine.Take(ctx, subject, plan, cost)
	}
	// Many requests share a network; the engine is fastest if the last subject is
	// the one that most requests share.
	charges := [...]ratelimit.Charge{
		{Subject: subject[:i], Plan: plan, Cost: cost},
		{Subject: "headers:" + subject[i+1:], Plan: v.networks, Cost: cost},
	}
	var decisions [len(charges)]ratelimit.Decision
	if err := v.engine.TakeAll(ctx, charges[:], decisions[:]); err != nil {
		return ratelimit.Decision{}, err
	}
	return decisions[ratelimit.Deciding(decisions[:])], nil
}

// addresses are fields that hold the address of the client, which a proxy has written.
var addresses = []string{"X-Forwarded-For", "Forwarded", "X-Real-Ip", "True-Client-Ip", "Cf-Connecting-Ip"}

// mustField returns the canonical name of a header field that a client may send.
func mustField(name string) string {
	field := textproto.CanonicalMIMEHeaderKey(name)
	switch {
	case !isFieldName(name):
		panic(fmt.Sprintf("limit.ByHeader: %q is not the name of a header field", name))
	case field == "Host" || field == "Transfer-Encoding" || field == "Trailer":
		panic("limit.ByHeader: net/http removes the field " + field + " from requests; read the request in limit.ByUser")
	case slices.Contains(addresses, field):
		panic("limit.ByHeader: the field " + field + " holds an address, which any client can write; " +
			"use limit.Behind(proxies).ByIP, or limit.Clients with clientip.FromHeader")
	}
	return field
}

// isFieldName reports whether name is a token (RFC 9110 section 5.6.2).
func isFieldName(name string) bool {
	for _, c := range []byte(name) {
		alnum := '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
		if !alnum && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return name != ""
}
