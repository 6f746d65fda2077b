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
			if site != "none" && site != "same-origin" {
				a.errors.Respond(w, r, errCrossSite)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
