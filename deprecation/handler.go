package deprecation

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/animalstore/gatehouse/internal/response"
)

// SetHeaders sets the Deprecation, Sunset and Link fields in h, each once however
// often it is called. Links of others stay. From the sunset on there is no Sunset
// field: one in the past says nothing (RFC 8594 section 3).
//
// It is for responses outside Headers and Enforce, which call it themselves.
func (d *Declaration) SetHeaders(h http.Header) {
	if d != nil {
		d.setHeaders(h, d.now())
	}
}

// setHeaders writes into the map itself, since Header.Set allocates a slice for each
// value. The names are in canonical form.
func (d *Declaration) setHeaders(h http.Header, now time.Time) {
	if d.deprecationField != nil {
		h["Deprecation"] = d.deprecationField
	}
	switch {
	case d.isRemoved(now):
		delete(h, "Sunset")
	case d.sunsetField != nil:
		h["Sunset"] = d.sunsetField
	}
	if d.links != nil {
		d.links.EditHeader(h)
	}
}

// linkField is a Link value that responses must have.
type linkField struct{ value []string }

// EditHeader adds the value to Link unless it is there.
func (f *linkField) EditHeader(h http.Header) {
	switch lines := h["Link"]; {
	case len(lines) == 0:
		h["Link"] = f.value
	case !slices.Contains(lines, f.value[0]):
		h["Link"] = append(lines, f.value[0])
	}
}

// serve calls next, and adds the links again before the header is sent: a
// handler that calls Header().Set for a link of its own removes them.
func (d *Declaration) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	if d.links == nil {
		next.ServeHTTP(w, r)
		return
	}
	t := response.Edit(w, d.links)
	defer t.Finish() // also after a panic, which an outer handler may answer
	next.ServeHTTP(t, r)
}

// isRemoved reports whether the sunset has come.
func (d *Declaration) isRemoved(now time.Time) bool {
	return !d.sunset.IsZero() && !now.Before(d.sunset)
}

// Headers is a middleware that sets the headers of [Declaration.SetHeaders] on every
// response from further in, and refuses nothing. Links that a handler sets stay
// beside them: a declaration with links wraps the ResponseWriter, which is the only
// allocation, and the wrapper supports [http.ResponseController]. Place Headers
// before authentication and rate limiting, with OnPath to select the requests.
func (d *Declaration) Headers(next http.Handler) http.Handler {
	if d == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.setHeaders(w.Header(), d.now())
		d.serve(next, w, r)
	})
}

// Enforce is a middleware around the operation itself. It sets the headers on every
// response, reports the request to OnUse, and passes it to next until the sunset.
// From that instant on it answers 410 with the code operation_removed (RFC 9110
// section 15.5.11), and during a brownout the same with a Retry-After of whole
// seconds to its end.
//
// Registered at one route of a ServeMux, Enforce gets only requests with the method of
// that route; the mux answers other methods with 405, even after the sunset. Around the
// mux, with OnPath, it answers all methods of the path with 410, and OnUse gets them all.
func (d *Declaration) Enforce(next http.Handler) http.Handler {
	if d == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := d.now()
		h := w.Header()
		d.setHeaders(h, now)
		if d.onUse != nil {
			d.onUse(r)
		}
		if d.isRemoved(now) {
			d.errors.Respond(w, r, d.removed)
			return
		}
		if left := d.brownoutLeft(now); left > 0 {
			h.Set("Retry-After", retryAfter(left))
			d.errors.Respond(w, r, d.brownout)
			return
		}
		d.serve(next, w, r)
	})
}

// retryAfter rounds up, so that a client that waits that long comes after the end. A
// time.Duration ends after 292 years.
func retryAfter(d time.Duration) string {
	return strconv.FormatInt(int64((min(d, math.MaxInt64-time.Second)+time.Second-1)/time.Second), 10)
}
