package ratelimit

import (
	"fmt"
	"net/http"
	"strconv"
)

// A HeaderSet selects header fields that tell a client what it has left. Sets are
// combined with |. The zero HeaderSet is [XRateLimit].
type HeaderSet uint8

const (
	XRateLimit     HeaderSet = 1 // X-RateLimit-Limit, -Remaining and -Reset: [Decision.SetHeaders]
	DraftRateLimit HeaderSet = 2 // RateLimit and RateLimit-Policy: [Decision.SetDraftHeaders]
	NoHeaders      HeaderSet = 4 // none of them; not combined with others
)

func (s HeaderSet) validate() error {
	if s > NoHeaders {
		return fmt.Errorf("ratelimit: Options.Headers must be NoHeaders, or XRateLimit and DraftRateLimit combined, got %d", s)
	}
	return nil
}

// Set sets the fields of s in h, and Retry-After if the request was denied. It does
// nothing if d has no Plan. An unlimited plan has no fields, and a suspended one only
// X-RateLimit-Limit and -Remaining.
func (s HeaderSet) Set(h http.Header, d *Decision) {
	if s == 0 || s&XRateLimit != 0 {
		d.SetHeaders(h)
	} else {
		d.setRetryAfter(h)
	}
	if s&DraftRateLimit != 0 {
		d.SetDraftHeaders(h)
	}
}

func (d *Decision) setRetryAfter(h http.Header) {
	if d.Plan != nil && d.RetryAfter > 0 {
		h[fieldRetryAfter] = []string{strconv.FormatInt(d.RetryAfterSeconds(), 10)}
	}
}
