package limit

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"sync/atomic"

	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// ByIP limits each client by the address of its connection: an IPv4 address, or an IPv6
// /64 network, since any subscriber has at least 2^64 addresses of IPv6. Some have more; see
// [Addresses.WithIPv6Prefix]. Behind a reverse proxy all clients have the proxy's address; use
// [Behind]. ByIP reads no header, which any client could write. Call it once, not for each
// request: each call counts from 0. It panics if the quotas make no valid plan, see
// [ratelimit.NewPlan].
func ByIP(quotas ...ratelimit.Quota) func(http.Handler) http.Handler {
	return Addresses{}.ByIP(quotas...)
}

// ByUser limits each user by the name that user returns, such as the one that
// authentication has put into the context. The name must be verified: a client that may
// choose it escapes every limit, or uses up another user's. If it is empty, the request
// counts for the client's network as with [ByIP], under the same quotas. Place ByUser after
// authentication. It panics if user is nil or the quotas make no valid plan.
func ByUser(user func(*http.Request) string, quotas ...ratelimit.Quota) func(http.Handler) http.Handler {
	return Addresses{}.ByUser(user, quotas...)
}

// ByPlan limits each user under a plan of its own, and bans it as the plan's penalty says.
// The name is as in [ByUser]: verified, or empty for the client's network, which needs a
// plan with the zero Penalty if many clients share it. The plan must not be nil: such a
// request is answered with 500. ratelimit.UnlimitedPlan says that there is no limit. An
// error of planOf is answered as [New] says of identify. Make plans that several users have
// once, with [ratelimit.MustPlan], not for each request:
//
//	free := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(),
//		ratelimit.PerMinute(60), ratelimit.PerDay(1000))
//
// It panics if planOf is nil.
func ByPlan(planOf func(*http.Request) (user string, plan *ratelimit.Plan, err error)) func(http.Handler) http.Handler {
	return Addresses{}.ByPlan(planOf)
}

// ByIP is the function [ByIP] for these clients.
func (c Addresses) ByIP(quotas ...ratelimit.Quota) func(http.Handler) http.Handler {
	plan := mustPlan("limit.ByIP", quotas)
	return c.ByPlan(func(*http.Request) (string, *ratelimit.Plan, error) { return "", plan, nil })
}

// ByUser is the function [ByUser] for these clients.
func (c Addresses) ByUser(user func(*http.Request) string, quotas ...ratelimit.Quota) func(http.Handler) http.Handler {
	if user == nil {
		panic("limit.ByUser: the function that returns the user must not be nil")
	}
	plan := mustPlan("limit.ByUser", quotas)
	return c.ByPlan(func(r *http.Request) (string, *ratelimit.Plan, error) { return user(r), plan, nil })
}

// ByPlan is the function [ByPlan] for these clients.
func (c Addresses) ByPlan(planOf func(*http.Request) (user string, plan *ratelimit.Plan, err error)) func(http.Handler) http.Handler {
	if planOf == nil {
		panic("limit.ByPlan: the function that returns the user and the plan must not be nil")
	}
	engine, _ := memory.New(memory.Options{}) // neither fails without options
	middleware, _ := New(engine, c.Identify(planOf), Options{})
	return middleware
}

// Identify returns the function with which ByPlan calls [New], for services that need more than
// ByPlan. Examples are an engine or options of their own, or a function around it that adds to
// the Caller. A user's subject is [UserSubject], and a client without a user has the Source's
// NetworkSubject. With API keys the function around it returns the principal's Subject
// and [ratelimit.KindAPIKey], and calls Identify for clients without a key, as examples/keys
// does. Identify panics if planOf is nil.
func (c Addresses) Identify(planOf func(*http.Request) (user string, plan *ratelimit.Plan, err error)) func(*http.Request) (ratelimit.Caller, error) {
	if planOf == nil {
		panic("limit.Identify: the function that returns the user and the plan must not be nil")
	}
	network := c.networks()
	return func(r *http.Request) (ratelimit.Caller, error) {
		user, plan, err := planOf(r)
		switch {
		case err != nil:
			return ratelimit.Caller{}, err
		case user == "":
			return ratelimit.Caller{Subject: network(r), Plan: plan}, nil
		}
		return ratelimit.Caller{Subject: UserSubject(user), Plan: plan}, nil
	}
}

// UserSubject returns the subject of a user of [ByUser] and [ByPlan], "user:" and the name,
// for calls about one user, such as a ban by hand. A limit with an Options.Name, such as
// "search", counts and bans "search/" + UserSubject(name).
func UserSubject(name string) string { return "user:" + name }

// mustPlan returns the plan of quotas. Its panic names the function.
func mustPlan(function string, quotas []ratelimit.Quota) *ratelimit.Plan {
	plan, err := ratelimit.NewPlan("", ratelimit.Penalty{}, quotas...)
	if err != nil {
		panic(fmt.Errorf("%s: %w", function, err))
	}
	return plan
}

// Addresses says where the address of a client comes from. The zero value takes the address of
// the connection, as the functions of this package do. [Behind] is for reverse proxies that
// send X-Forwarded-For, and Addresses{Source: source} for any other [clientip.Source].
type Addresses struct {
	Source *clientip.Source // nil means clientip.FromRemoteAddr()
}

// Behind is for services behind one or more reverse proxies, each of which adds the address
// of its own client at the end of X-Forwarded-For. It takes the networks or the addresses
// of all of these proxies, such as "10.0.0.0/8" or "192.0.2.7", and believes the header
// only from them; see [clientip.FromXForwardedFor]. A proxy that connects over a Unix
// socket has no address; see [clientip.Source]. Behind panics if a text is not a network,
// or if there are none.
//
// Without Behind, or if the networks do not contain the proxy, all clients of a proxy are
// counted as one. So are they if the proxy sends no X-Forwarded-For. The functions of this
// package log a warning (slog.Default) once for each of two mistakes. A request from a known
// proxy does not name its client. Or a request seems to come from an unknown proxy: it arrives
// over a Unix socket, or from a private address with X-Forwarded-For or Forwarded. So does one
// from a public address, if 90 of the first 100 such requests have these fields.
func Behind(proxies ...string) Addresses {
	prefixes, err := clientip.ParsePrefixes(proxies)
	if err != nil {
		panic(fmt.Errorf("limit.Behind: %w", err))
	}
	source, err := clientip.FromXForwardedFor(prefixes)
	if err != nil {
		panic(fmt.Errorf("limit.Behind: %w", err))
	}
	return Addresses{source}
}

// WithIPv6Prefix returns c with a Source that counts an IPv6 client by a prefix of 48 to 64 bits,
// not by its /64. It panics for any other number. [clientip.Source.WithIPv6Prefix] says what a
// change does to usage and bans.
//
//	r.Use(limit.Addresses{}.WithIPv6Prefix(56).ByIP(ratelimit.PerMinute(100)))
func (c Addresses) WithIPv6Prefix(bits int) Addresses {
	source, err := cmp.Or(c.Source, clientip.FromRemoteAddr()).WithIPv6Prefix(bits)
	if err != nil {
		panic(fmt.Errorf("limit.Addresses: %w", err))
	}
	return Addresses{source}
}

// networks returns the function that names the network of a request's client.
func (c Addresses) networks() func(*http.Request) string {
	var unknown, unnamed atomic.Bool // a warning was logged about such a proxy, or such a client
	var first firstRequests
	peer := clientip.FromRemoteAddr()
	source := cmp.Or(c.Source, peer)
	return func(r *http.Request) string {
		addr, err := source.Resolve(r)
		switch {
		case err != nil:
			if !unnamed.Load() && !unnamed.Swap(true) {
				slog.WarnContext(r.Context(), "limit: a request from a trusted proxy does not name its client, and counts for the proxy",
					"proxy", r.RemoteAddr, "error", err)
			}
		case !unknown.Load() && first.fromProxy(r, addr, peer) && !unknown.Swap(true):
			slog.WarnContext(r.Context(), "limit: all clients of this proxy are counted as one; see limit.Behind",
				"proxy", r.RemoteAddr)
		}
		return source.NetworkSubject(addr)
	}
}

// firstRequests are the first requests from public addresses, of which some were forwarded.
type firstRequests struct{ seen, forwarded atomic.Int32 }

// fromProxy reports whether a request of a client seems to come from an unknown reverse proxy,
// which then has the address of the client. A client that the service sees at a public address
// may have written the headers itself. So they say something there only if nearly all of the
// first hundred requests have them. Health checks and scanners may not.
func (f *firstRequests) fromProxy(r *http.Request, client netip.Addr, peer *clientip.Source) bool {
	const many, most, last = 100, 90, 110
	public := client.IsValid() && !client.IsPrivate() && !client.IsLoopback()
	forwarded := r.Header["X-Forwarded-For"] != nil || r.Header["Forwarded"] != nil
	switch {
	case !public:
		return (forwarded || !client.IsValid()) && client == peer.Addr(r) // a Unix socket is not valid
	case f.seen.Load() >= last || client != peer.Addr(r):
		return false
	}
	n := f.seen.Add(1)
	if forwarded && n <= many {
		f.forwarded.Add(1)
	}
	return forwarded && n >= many && f.forwarded.Load() >= most
}
