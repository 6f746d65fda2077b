package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	digits   = regexp.MustCompile(`^[0-9]+$`)
	keyShape = regexp.MustCompile(`pet_live_[0-9A-Za-z]{36}`)
)

// planSuspended is the code of responses that have no reset.
const planSuspended = "plan_suspended"

// invariants hold for every response of the service.
func invariants(resp *Response, now int64) error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	h := resp.Header
	for _, name := range []string{
		"X-Request-Id", "Date",
		"Cache-Control", "X-Content-Type-Options", "Content-Security-Policy", "Referrer-Policy",
	} {
		if n := len(h.Values(name)); n != 1 {
			fail("there are %d lines of %s, want 1", n, name)
		}
	}
	for _, name := range []string{
		"Content-Type", "Content-Length", "Retry-After", "Deprecation", "Sunset", "Allow", "Location", "Etag", "Connection", "Content-Encoding",
	} {
		if n := len(h.Values(name)); n > 1 {
			fail("there are %d lines of %s, want 1 at most", n, name)
		}
	}
	if h.Get("Server") != "" {
		fail("Server is %q, want none", h.Get("Server"))
	}
	if h.Get("X-Content-Type-Options") != "nosniff" {
		fail("X-Content-Type-Options is %q", h.Get("X-Content-Type-Options"))
	}
	if h.Get("Cache-Control") != "no-store" {
		fail("Cache-Control is %q, want no-store", h.Get("Cache-Control"))
	}
	if has, want := deprecated(h), isPetPath(resp.Target); has != want {
		fail("deprecation fields are there: %t, want %t", has, want)
	}
	rates(resp, now, fail)
	content(resp, fail)
	refusal(resp, now, fail)
	if resp.StatusCode >= 400 {
		envelope(resp, fail)
	}
	for name, values := range h {
		if keyShape.MatchString(strings.Join(values, " ")) {
			fail("%s holds an API key", name)
		}
	}
	if keyShape.Match(resp.Data) {
		fail("the body holds an API key")
	}
	return errors.Join(errs...)
}

// rates wants the X-RateLimit fields.
func rates(resp *Response, now int64, fail func(format string, args ...any)) {
	h, suspended := resp.Header, resp.Code() == planSuspended
	names := []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"}
	if suspended {
		names = names[:2] // there is no reset
	}
	for _, name := range names {
		if lines := h.Values(name); len(lines) != 1 || !digits.MatchString(lines[0]) {
			fail("the lines of %s are %q, want one of digits", name, lines)
		}
	}
	limit, remaining, reset := resp.Int("X-Ratelimit-Limit"), resp.Int("X-Ratelimit-Remaining"), resp.Int("X-Ratelimit-Reset")
	if remaining < 0 || remaining > limit {
		fail("X-RateLimit-Remaining is %d, want 0 to the limit of %d", remaining, limit)
	}
	if suspended && (limit != 0 || remaining != 0 || h.Get("X-RateLimit-Reset") != "") {
		fail("the X-RateLimit fields of a suspended plan are %d, %d, %q; want 0, 0 and no reset", limit, remaining, h.Get("X-RateLimit-Reset"))
	}
	if !suspended && (reset < now || reset > now+366*86400) {
		fail("X-RateLimit-Reset is %d, want a Unix time from %d on", reset, now)
	}
}

// deprecated reports whether a response has the fields of a deprecation. Only responses on
// the path of getPet have them.
func deprecated(h http.Header) bool {
	return h.Get("Deprecation") != "" || h.Get("Sunset") != "" || strings.Contains(h.Get("Link"), "successor-version")
}

// isPetPath reports whether a request target has the path of getPet, however its
// segments are percent-encoded.
func isPetPath(target string) bool {
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return false
	}
	segments := strings.Split(u.EscapedPath(), "/")
	for i, s := range segments {
		// "." and ".." are steps in a path and not segments; encoded they are segments.
		if s == "." || s == ".." {
			return false
		}
		if segments[i], err = url.PathUnescape(s); err != nil {
			return false
		}
	}
	return len(segments) == 4 && segments[0] == "" && segments[1] == "v1" && segments[2] == "pets" && segments[3] != ""
}

// content wants a body that is what the header section says.
func content(resp *Response, fail func(format string, args ...any)) {
	length := resp.Header.Get("Content-Length")
	switch {
	case resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified:
		if length != "" || len(resp.Data) > 0 {
			fail("status %d has content", resp.StatusCode)
		}
		return
	case resp.Method == http.MethodHead:
		if len(resp.Data) > 0 {
			fail("a response to HEAD has a body")
		}
		if !digits.MatchString(length) {
			fail("Content-Length is %q", length)
		}
	case length != strconv.Itoa(resp.length()):
		fail("Content-Length is %q, and the body has %d bytes", length, resp.length())
	}
	if resp.Header.Get("Content-Encoding") != "" && !strings.Contains(strings.Join(resp.Header.Values("Vary"), ","), "Accept-Encoding") {
		fail("a content coding without Vary: Accept-Encoding")
	}
	if t := resp.Header.Get("Content-Type"); t != "application/json" && !(t == "application/problem+json" && resp.StatusCode >= 400) {
		fail("Content-Type is %q", t)
	}
}

// refusal wants what must go with certain statuses.
func refusal(resp *Response, now int64, fail func(format string, args ...any)) {
	h := resp.Header
	banned := strings.HasSuffix(resp.Code(), "_banned")
	if resp.Method != http.MethodHead && banned != (h.Get("X-RateLimit-Banned") == "true") {
		fail("X-RateLimit-Banned is %q with the code %s", h.Get("X-RateLimit-Banned"), resp.Code())
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		if !strings.HasPrefix(h.Get("Www-Authenticate"), `Bearer realm="`) {
			fail("WWW-Authenticate is %q", h.Get("Www-Authenticate"))
		}
	case http.StatusMethodNotAllowed:
		if h.Get("Allow") == "" {
			fail("405 without Allow")
		}
	case http.StatusTooManyRequests:
		if resp.Int("X-Ratelimit-Remaining") != 0 && !strings.Contains(string(resp.Data), "was not checked") {
			fail("429 while something remains")
		}
		// A ban can end before the window does, in which something is left.
		if !banned && resp.Int("X-Ratelimit-Reset") > now+resp.Int("Retry-After") {
			fail("Retry-After of %d is before X-RateLimit-Reset, which is in %d",
				resp.Int("Retry-After"), resp.Int("X-Ratelimit-Reset")-now)
		}
	}
	retryAfter(resp, fail)
}

// retryAfter wants the field where a later request can succeed, and only there.
func retryAfter(resp *Response, fail func(format string, args ...any)) {
	field := resp.Header.Get("Retry-After")
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		if resp.Int("Retry-After") < 1 {
			fail("Retry-After is %q, want whole seconds from 1 on", field)
		}
	case http.StatusGone: // in a brownout
	default:
		if field != "" {
			fail("there is Retry-After, and nothing to retry")
		}
	}
}

// envelope wants the body of an error to have exactly its members.
func envelope(resp *Response, fail func(format string, args ...any)) {
	if !strings.Contains(strings.ToLower(strings.Join(resp.Header.Values("Vary"), ",")), "accept") {
		fail("an error without Vary: Accept")
	}
	if resp.Method == http.MethodHead {
		return
	}
	var members map[string]any
	d := json.NewDecoder(bytes.NewReader(resp.Data))
	d.UseNumber()
	if err := d.Decode(&members); err != nil {
		fail("the body of an error is not an object: %v", err)
		return
	}
	if members["status"] != json.Number(strconv.Itoa(resp.StatusCode)) {
		fail("the member status is %v, and the status %d", members["status"], resp.StatusCode)
	}
	names := slices.Sorted(maps.Keys(members))
	if resp.Header.Get("Content-Type") == "application/json" && !slices.Equal(names, []string{"code", "message", "status"}) {
		fail("the error has the members %q, want code, message, status", names)
	}
}
