package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/animalstore/gatehouse/apierror"
)

// sentToken returns the token that a request was sent with, or "". Browsers ask for a password
// (RFC 7617), and cannot send a bearer token (RFC 6750).
func sentToken(r *http.Request) string {
	if _, password, ok := r.BasicAuth(); ok {
		return password
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return token
}

// isToken compares digests, so that its duration does not depend on the token.
func (a *admin) isToken(sent string) bool {
	want, got := sha256.Sum256([]byte(a.Token)), sha256.Sum256([]byte(sent))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

var errNoToken = apierror.New(http.StatusUnauthorized, "invalid_admin_token",
	"The admin token is missing or wrong. Send it as Authorization: Bearer <token>, or as the password with any user name.")

// guard requires the token, if there is one. A browser asks its user for it.
func (a *admin) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if entryOf(r.Context()).trusted {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Add("WWW-Authenticate", `Basic realm="petstore admin token", charset="UTF-8"`)
		w.Header().Add("WWW-Authenticate", `Bearer realm="petstore admin"`)
		a.errors.Respond(w, r, errNoToken)
	})
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
