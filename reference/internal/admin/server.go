package admin

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/reference/internal/keys"
	"github.com/animalstore/gatehouse/reference/internal/observe"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// A Server is a server that serves, as far as the endpoints show and change it.
type Server struct {
	Limiter  Limiter
	Activity *observe.Activity // of the decisions that it has made
	Store    Store

	// Plan returns the plans that a key can have, by the present settings.
	Plan keys.PlanFunc

	// Deprecations are the deprecated operations by operationId, by the present settings.
	Deprecations map[string]deprecation.Options

	// DailyUse returns the days of an owner, as [store.DailyUses] says, with the requests
	// that are not stored yet.
	DailyUse func(ctx context.Context, owner string, since time.Time) ([]store.DailyUse, error)

	// Report returns the numbers for GET /state.
	Report func() Report
}

// A Store stores what an operator can see and change.
type Store interface {
	store.Keys
	store.Audits
	store.DeprecatedUses
}

// A Limiter is an engine that an operator can look into.
type Limiter interface {
	engine.Peeker
	ratelimit.Banner
}

var errStarting = apierror.New(http.StatusServiceUnavailable, apierror.CodeUnavailable, "The server is still starting. Try again later.")

// serving returns the handler of an endpoint that requires a server which serves.
func (a *admin) serving(h func(w http.ResponseWriter, r *http.Request, s *Server) error) http.Handler {
	return a.errors.Handle(func(w http.ResponseWriter, r *http.Request) error {
		s := a.Server()
		if s == nil {
			return errStarting
		}
		return h(w, r, s)
	})
}

var errOtherHost = apierror.New(http.StatusMisdirectedRequest, "misdirected_request",
	"Without a token, the admin listener answers only requests for localhost and loopback addresses.")

// ownHost refuses requests that name a host other than this machine, unless a token
// protects the listener.
func (a *admin) ownHost(next http.Handler) http.Handler {
	if a.Token != "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback(r.Host) {
			a.errors.Respond(w, r, errOtherHost)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLoopback reports whether a Host field names this machine. An attacker can give any
// other name than localhost the address of this machine (RFC 6761 section 6.3 rules
// that out for localhost).
func isLoopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

var errCrossSite = apierror.New(http.StatusForbidden, "cross_site_request",
	"The admin listener does not answer requests that a browser sends for a page of another origin.")

// sameOrigin refuses requests that a browser sends for a page of another origin. Such a
// page can send them without the knowledge of the operator, by a link, an image or a
// form. Browsers say so in Sec-Fetch-Site, older ones in Origin, which pages cannot set.
// Other clients send neither.
func (a *admin) sameOrigin(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Check lets every GET pass, but here some of them take a profile.
		err := protection.Check(&http.Request{Method: http.MethodPost, Host: r.Host, Header: r.Header})
		if err != nil && !opensConsole(r) {
			a.errors.Respond(w, r, errCrossSite)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// opensConsole reports whether a browser opens the console for a link on another page. The
// console holds no data, and the requests that it sends are of its own origin.
func opensConsole(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Path == "/" && r.Header.Get("Sec-Fetch-Dest") == "document"
}
