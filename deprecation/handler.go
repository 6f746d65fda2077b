package deprecation

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/animalstore/gatehouse/internal/response"
)

// Annotate puts the Deprecation, Sunset and Link fields into h, each once however
// often it is called. Link values of others stay. From the sunset on there is no
// Sunset field: one in the past says nothing (RFC 8594 section 3).
//
// It is for responses outside Announce and Handler, which call it themselves.
func (d *Declaration) Annotate(h http.Header) {
	if d != nil {
		d.annotate(h, d.now())
	}
}

// annotate writes into the map itself, since Header.Set allocates a slice for each
// value. The names are in canonical form.
func (d *Declaration) annotate(h http.Header, now time.Time) {
	h["Deprecation"] = d.deprecationField
	switch {
	case d.gone(now):
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

// gone reports whether the sunset has come.
func (d *Declaration) gone(now time.Time) bool {
	return !d.sunset.IsZero() && !now.Before(d.sunset)
}

// Announce is a middleware that puts the fields on every response from further
// in, and refuses nothing. Links that a handler sets stay beside them. Place it
// before authentication and rate limiting, with OnPath to pick the requests.
func (d *Declaration) Announce(next http.Handler) http.Handler {
	if d == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.annotate(w.Header(), d.now())
		d.serve(next, w, r)
	})
}

// Handler is a middleware around the operation itself. It puts the fields on every
// response, reports the request to OnUse, and passes it to next until the sunset.
// From that instant on it answers 410 with the code operation_removed (RFC 9110
// section 15.5.11), and during a brownout the same with a Retry-After of whole
// seconds to its end.
//
// At one route of a ServeMux it leaves other methods to the mux, and so a 405 even
// after the sunset. Around the mux, with OnPath, it comes first: all methods of
// the path answer 410 then, and OnUse sees them all.
func (d *Declaration) Handler(next http.Handler) http.Handler {
	if d == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := d.now()
		h := w.Header()
		d.annotate(h, now)
		if d.onUse != nil {
			d.onUse(r)
		}
		if d.gone(now) {
			d.errors.Respond(w, r, d.removed)
			return
		}
		if rest := d.brownoutAt(now); rest > 0 {
			h.Set("Retry-After", retryAfter(rest))
			d.errors.Respond(w, r, d.brownout)
			return
		}
		d.serve(next, w, r)
	})
}

// retryAfter rounds up, so that a client that waits that long comes after the end.
func retryAfter(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}
