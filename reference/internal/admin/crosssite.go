package admin

import (
	"net/http"

	"github.com/animalstore/gatehouse/apierror"
)

var errCrossSite = apierror.New(http.StatusForbidden, "cross_site_request",
	"The admin listener does not answer requests that a browser sends for a page of another origin.")

// sameSite refuses requests that a browser sends for a page of another origin. Such a
// page can send them without the knowledge of the operator, by a link, an image or a
// form. Browsers send Sec-Fetch-Site (Fetch Metadata), which pages cannot set. Other
// clients do not send the field.
func (a *admin) sameSite(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, site := range r.Header["Sec-Fetch-Site"] {
			// none: the user typed the address or used a bookmark.
			if site != "none" && site != "same-origin" && !opensConsole(r) {
				a.errors.Respond(w, r, errCrossSite)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// opensConsole reports whether a browser opens the console for a link on another page. The
// console holds no data, and the requests that it sends are of its own origin.
func opensConsole(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Path == "/" && r.Header.Get("Sec-Fetch-Dest") == "document"
}
