package admin

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/animalstore/gatehouse/apierror"
)

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
