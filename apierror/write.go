package apierror

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/internal/response"
)

const (
	mediaEnvelope = "application/json"
	mediaProblem  = "application/problem+json"
)

// envelope is the default body.
type envelope struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Status  int    `json:"status"`
}

// problem is the body of RFC 9457 section 3.1. There is no instance: the request
// ID has a header field of its own.
type problem struct {
	Type     string   `json:"type"`
	Title    string   `json:"title,omitempty"` // not every status has a phrase
	Status   int      `json:"status"`
	Detail   string   `json:"detail"`
	Code     Code     `json:"code"`
	Errors   []Detail `json:"errors,omitempty"`
	Violated []string `json:"violated-policies,omitempty"`
}

// encoded is a body with the field values that go with it. The slices are
// capped, so that appending to one cannot change another response.
type encoded struct {
	body                []byte
	contentType, length []string
}

// Values of fields that are the same on all responses.
var (
	noStore    = []string{"no-store"}
	noSniff    = []string{"nosniff"}
	varyAccept = []string{"Accept"}
	envelopes  = []string{mediaEnvelope}
	problems   = []string{mediaProblem}
)

// send writes e, which is valid, as the whole response to r.
func (rs *Responder) send(w http.ResponseWriter, r *http.Request, e *Error) {
	h := w.Header()
	setFields(h, e)
	if rs != nil && rs.Write != nil {
		delete(h, "Content-Type")
		delete(h, "Content-Length")
		t := response.Track(w)
		if rs.Write(t, r, e); t.Begun() {
			return
		}
		setFields(h, e) // in place of what Write has set for its own form
	}

	problem := prefersProblem(r.Header["Accept"])
	var out encoded
	switch {
	case e.preencoded == nil:
		out = encode(e, problem)
	case problem:
		out = e.preencoded[1]
	default:
		out = e.preencoded[0]
	}
	h["Content-Type"] = out.contentType
	h["Content-Length"] = out.length
	if h["Vary"] == nil {
		h["Vary"] = varyAccept
	} else {
		addVary(h, "Accept")
	}
	w.WriteHeader(e.Status)
	if r.Method != http.MethodHead { // RFC 9110 section 9.3.2
		_, _ = w.Write(out.body) // fails if the client is gone
	}
}

// setFields makes h the header of an error, except for what depends on its form.
func setFields(h http.Header, e *Error) {
	dropStale(h, e.Status)
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	if e.RetryAfter > 0 && h["Retry-After"] == nil {
		seconds := (e.RetryAfter-1)/time.Second + 1 // rounded up
		h["Retry-After"] = []string{strconv.FormatInt(int64(seconds), 10)}
	}
}

// encode returns the body, which ends in a line feed, and its fields.
func encode(e *Error, asProblem bool) (out encoded) {
	var v any
	if asProblem {
		out.contentType = problems
		v = &problem{
			Type: cmp.Or(e.ProblemType, "about:blank"), Title: cmp.Or(e.ProblemTitle, http.StatusText(e.Status)),
			Status: e.Status, Detail: e.message(), Code: e.Code, Errors: e.Details, Violated: e.ViolatedPolicies,
		}
	} else {
		out.contentType = envelopes
		v = &envelope{Code: e.Code, Message: e.message(), Status: e.Status}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // the media type and nosniff keep it from being read as HTML
	_ = enc.Encode(v)        // strings and integers always encode
	out.body = b.Bytes()
	out.length = []string{strconv.Itoa(len(out.body))}
	return out
}

// addVary adds name to Vary unless it is there (RFC 9110 section 12.5.5). The
// envelope has it too: a cache must not answer with it a request for the other.
func addVary(h http.Header, name string) {
	for _, line := range h["Vary"] {
		for member := range strings.SplitSeq(line, ",") {
			member = textproto.TrimString(member)
			if member == "*" || strings.EqualFold(member, name) {
				return
			}
		}
	}
	h.Add("Vary", name)
}

// dropStale removes the fields that belong to the response which the error replaces: fields
// that describe its representation, that say how to cache it, or that make a proxy send a
// file. They would be wrong on the error, and harmful in a cache.
func dropStale(h http.Header, status int) {
	if onlyKept(h) {
		return
	}
	for name := range h {
		canonical := http.CanonicalHeaderKey(name) // net/http also sends names of another case
		switch {
		case name == "Content-Range" && hasLength(h[name], status):
		case isStale(canonical), name != canonical && slices.Contains(written, canonical):
			delete(h, name)
		}
	}
}

// written are the fields that send sets.
var written = []string{"Content-Type", "Content-Length", "Cache-Control", "X-Content-Type-Options"}

// kept are the fields of a 429, a 401 or another refusal that is sent before any handler
// runs, also with the fields of middleware.SecurityHeaders. All of them stay, or send sets
// them.
var kept = [...]string{
	"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Retry-After", "Vary", "X-Request-Id",
	"Cache-Control", "X-Content-Type-Options", "Content-Security-Policy", "Referrer-Policy", "Www-Authenticate",
	"Content-Type", "Content-Length", "X-Ratelimit-Banned",
}

// onlyKept reports whether h has only kept fields. Looking these up is much faster than
// iterating over h, which matters in a flood.
func onlyKept(h http.Header) bool {
	others := len(h)
	for i := 0; others > 0 && others <= len(kept)-i; i++ {
		if _, found := h[kept[i]]; found {
			others--
		}
	}
	return others == 0
}

// hasLength reports whether a Content-Range belongs to a 416, which has the length of
// the representation (RFC 9110 section 15.5.17). That of a 206 has another form.
func hasLength(lines []string, status int) bool {
	return status == http.StatusRequestedRangeNotSatisfiable && len(lines) == 1 && strings.HasPrefix(lines[0], "bytes */")
}

// isStale takes a name in canonical form.
func isStale(name string) bool {
	switch name {
	case "X-Accel-Expires", "X-Accel-Redirect", "X-Sendfile":
		return true
	case "Content-Digest", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Location",
		"Content-Md5", "Content-Range", "Digest", "Etag", "Last-Modified", "Repr-Digest", "Unencoded-Digest",
		"Use-As-Dictionary",
		"Signature", "Signature-Input", // of another status and content (RFC 9421)
		"Trailer", "Transfer-Encoding",
		"Age", "Edge-Control", "Expires", "No-Vary-Search", "Surrogate-Control":
		return true
	}
	// Targeted cache control (RFC 9213): CDN-Cache-Control, and fields that content
	// delivery networks name after themselves.
	return strings.HasSuffix(name, "-Cache-Control") || strings.HasPrefix(name, http.TrailerPrefix)
}
