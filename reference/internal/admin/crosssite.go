package admin

import (
	"net/http"

	"github.com/animalstore/gatehouse/apierror"
)

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
