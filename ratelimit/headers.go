package ratelimit

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
)

// The header fields of a decision, in the canonical form of [http.Header], in which
// they can be set without a copy of the name.
const (
	fieldLimit      = "X-Ratelimit-Limit"
	fieldRemaining  = "X-Ratelimit-Remaining"
	fieldReset      = "X-Ratelimit-Reset"
	fieldRetryAfter = "Retry-After"
	fieldPolicy     = "Ratelimit-Policy"
	fieldDraft      = "Ratelimit"
)

// SetHeaders sets X-RateLimit-Limit, -Remaining and -Reset in h, all three of
// the applicable quota, and Retry-After (RFC 9110 section 10.2.3) if the request
// was denied. Reset is Unix time in seconds. Retry-After is in seconds, rounded up: a
// client that waits that long is admitted, unless something else uses the quota
// meanwhile. SetHeaders does nothing if d has no Plan, as with an error, or if the plan is
// unlimited. If the plan is suspended, it sets only Limit and Remaining, to 0, and removes
// Reset.
func (d *Decision) SetHeaders(h http.Header) {
	if d.Plan == nil || len(d.Plan.quotas) == 0 {
		if d.Outcome == Suspended {
			h[fieldLimit], h[fieldRemaining] = []string{"0"}, []string{"0"}
			delete(h, fieldReset) // of a middleware further out
		}
		return
	}
	// One array holds the values and one string the digits, so that four fields
	// cost two allocations. The slices are capped, so that appending to one does
	// not write into the next.
	v := new([4]string)
	var digits [64]byte
	b := strconv.AppendInt(digits[:0], d.Remaining(), 10)
	remaining := len(b)
	b, kept := d.appendReset(b)
	reset := len(b)
	if !d.Allowed() {
		b = strconv.AppendInt(b, d.RetryAfterSeconds(), 10)
	}
	s := string(b)
	v[0], v[1], v[2] = d.Plan.limits[d.Applicable], s[:remaining], s[remaining:reset]
	if kept != "" {
		v[2] = kept
	}
	h[fieldLimit] = v[0:1:1]
	h[fieldRemaining] = v[1:2:2]
	h[fieldReset] = v[2:3:3]
	if !d.Allowed() {
		v[3] = s[reset:]
		h[fieldRetryAfter] = v[3:4:4]
	}
}

// SetDraftHeaders sets RateLimit-Policy and RateLimit in h, as
// draft-ietf-httpapi-ratelimit-headers-11 sections 3 and 4 define them: a List of
// Strings, one for each quota, with the quota q and the window w in seconds, and
// with what remains, r, for the next t seconds. A calendar window has no w, since its
// length varies. Of a smooth quota r is what can be used at once, and t the time until
// that is the whole burst. SetDraftHeaders does nothing if d has no Plan, or one without quotas.
// The draft may still change.
func (d *Decision) SetDraftHeaders(h http.Header) {
	if d.Plan == nil || len(d.Plan.quotas) == 0 {
		return
	}
	h[fieldPolicy] = []string{d.Plan.policyField()}
	var buf [160]byte
	b := buf[:0]
	for i := range d.Plan.Len() {
		if i > 0 {
			b = append(b, ", "...)
		}
		left, reset := d.States[i].Remaining, d.States[i].Reset
		if d.Outcome == Banned {
			left, reset = 0, max(reset, d.BanEnds)
		}
		b = append(b, '"')
		b = append(b, d.Plan.quotas[i].policyName()...)
		b = append(b, `";r=`...)
		b = strconv.AppendInt(b, left, 10)
		b = append(b, ";t="...)
		b = strconv.AppendInt(b, secondsUntil(reset, d.Time), 10)
	}
	h[fieldDraft] = []string{string(b)}
}

// policyField returns the RateLimit-Policy field.
func (p *Plan) policyField() string {
	if kept := p.policy.Load(); kept != nil {
		return *kept
	}
	var b strings.Builder
	for i, q := range p.quotas {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(`"` + q.policyName() + `";q=` + strconv.FormatInt(q.Limit, 10))
		if !q.Calendar() {
			b.WriteString(";w=" + strconv.FormatInt(int64(q.Window/time.Second), 10))
		}
	}
	field := b.String()
	p.policy.Store(&field)
	return field
}

// policyName is the name of the quota in the draft's fields. A plan may have both kinds
// of days, and fixed windows and a smooth quota of one length.
func (q Quota) policyName() string {
	switch {
	case q.Window == fixedwindow.Day:
		return "local-day"
	case q.burst > 0:
		return "smooth-" + q.windowName()
	}
	return q.windowName()
}

// secondsUntil returns the whole seconds, rounded up, from now in Unix
// nanoseconds to t in Unix seconds; 0 if t is past.
func secondsUntil(t, now int64) int64 {
	return max(t-now/int64(time.Second), 0)
}
