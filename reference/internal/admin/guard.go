package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/ratelimit"
)

// guard requires the token, if there is one.
func (a *admin) guard(next http.Handler) http.Handler {
	if a.Token == "" {
		return next
	}
	return a.auth.Require(next)
}

// passwordAsToken lets a browser open the console: it asks for a password, and cannot send a
// bearer token.
func passwordAsToken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, ok := r.BasicAuth(); ok && isConsole(r) {
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer "+password)
		}
		next.ServeHTTP(w, r)
	})
}

var (
	errAskForToken = apierror.New(http.StatusUnauthorized, "missing_admin_token",
		"The console needs the admin token as the password, with any user name.")
	errWrongToken = apierror.New(http.StatusUnauthorized, "invalid_admin_token",
		"The password is not the admin token. The console takes the token as the password, with any user name.")
)

// askForToken is guard for the console. A browser asks its user for the token.
func (a *admin) askForToken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		outcome := bearer.OutcomeFrom(r.Context())
		switch {
		case a.Token == "" || outcome == bearer.Authenticated:
			next.ServeHTTP(w, r)
			return
		case outcome == bearer.Refused: // too many wrong tokens
			a.guard(next).ServeHTTP(w, r)
			return
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="petstore admin token", charset="UTF-8"`)
		if outcome == bearer.Missing {
			a.errors.Respond(w, r, errAskForToken)
			return
		}
		a.errors.Respond(w, r, errWrongToken)
	})
}

// trusted reports whether a request may see the texts of errors.
func (a *admin) trusted(r *http.Request) bool {
	_, ok := bearer.FromContext[operator](r.Context())
	return ok || a.Token == ""
}

// guesses is how many wrong tokens a network may send in a minute.
var guesses = ratelimit.MustPlan("wrong admin tokens", ratelimit.Penalty{}, ratelimit.PerMinute(10))

// maxGuessers is how many networks are counted.
const maxGuessers = 4096

// verifyToken compares digests, so that its duration does not depend on the token. The wrong
// tokens of a network are counted, but never lock out the right one, which is too long to guess.
func (a *admin) verifyToken(ctx context.Context, sent string) (operator, error) {
	want, got := sha256.Sum256([]byte(a.Token)), sha256.Sum256([]byte(sent))
	switch {
	case a.Token == "":
		return operator{}, bearer.ErrInvalid
	case subtle.ConstantTimeCompare(got[:], want[:]) == 1:
		return operator{}, nil
	}
	e := entryOf(ctx)
	e.outcome = wrongToken
	d, err := a.wrong.Take(ctx, e.network, guesses, 1)
	if err == nil && !d.Allowed() {
		return operator{}, &apierror.Error{Status: http.StatusTooManyRequests, Code: apierror.CodeRateLimitExceeded, RetryAfter: d.RetryAfter,
			Message: "Your network has sent too many requests with a wrong admin token. Wait as long as Retry-After says."}
	}
	return operator{}, bearer.ErrInvalid
}

var errOtherHost = apierror.New(http.StatusMisdirectedRequest, "misdirected_request",
	"Without a token, the admin listener answers only requests for localhost and loopback addresses.")

// ownHost refuses requests that name a host other than this machine, unless a token
// protects the listener. A request without a Host comes from a health check, not from a browser.
func (a *admin) ownHost(next http.Handler) http.Handler {
	if a.Token != "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "" && !isLoopback(r.Host) {
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

// opensConsole reports whether a browser opens the console for a link on another page, which
// cannot read it.
func opensConsole(r *http.Request) bool {
	page := r.URL.Path == "/" || r.URL.Path == "/console/"
	return page && r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Dest") == "document"
}

func isConsole(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/console/") }
