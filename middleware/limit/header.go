package limit

import (
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// valuesPerNetwork is how many times the quotas of one value a network may use.
const valuesPerNetwork = 10

// maxSmoothRate is the highest rate of a smooth quota, in units a second.
const maxSmoothRate = 1_000_000

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
	all := mustPlan("limit.ByHeader", valuesOfANetwork(quotas))
	network := c.networks()
	return newMiddleware(func(r *http.Request) (ratelimit.Caller, error) {
		lines := r.Header[field]
		if len(lines) == 0 || lines[0] == "" {
			return ratelimit.Caller{Subject: network(r), Plan: plan}, nil
		}
		return ratelimit.Caller{
			Subject: "header:" + lines[0], Plan: plan,
			Also: []ratelimit.Charge{{Subject: "headers:" + network(r), Plan: all}},
		}, nil
	})
}

// valuesOfANetwork returns the quotas of all values together that a network sends.
func valuesOfANetwork(quotas []ratelimit.Quota) []ratelimit.Quota {
	all := slices.Clone(quotas)
	for i := range all {
		q := &all[i]
		burst := q.Burst()
		q.Limit = min(q.Limit*valuesPerNetwork, ratelimit.MaxLimit)
		if burst > 0 {
			q.Limit = min(q.Limit, maxSmoothRate*int64(q.Window/time.Second))
			*q = q.Smooth(min(burst*valuesPerNetwork, q.Limit))
		}
	}
	return all
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
