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
	XRateLimit     HeaderSet = 1              // X-RateLimit-Limit, -Remaining and -Reset: [Decision.SetHeaders]
	XRateLimitUsed HeaderSet = XRateLimit | 2 // also X-RateLimit-Used, Limit less Remaining, as GitHub's API has it: during a ban the whole Limit
	DraftRateLimit HeaderSet = 4              // RateLimit and RateLimit-Policy: [Decision.SetDraftHeaders]
	NoHeaders      HeaderSet = 8              // none of them; not combined with others
)

func (s HeaderSet) validate() error {
	if s > NoHeaders || s&XRateLimitUsed == XRateLimitUsed&^XRateLimit {
		return fmt.Errorf("ratelimit: Options.Headers must be NoHeaders, or XRateLimit, XRateLimitUsed and DraftRateLimit combined, got %d", s)
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
	if s <= XRateLimit || d.Plan == nil {
		return
	}
	if s&XRateLimitUsed == XRateLimitUsed && len(d.Plan.quotas) > 0 {
		h[fieldUsed] = []string{strconv.FormatInt(d.Limit()-d.Remaining(), 10)} // after SetHeaders, which removes it
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
