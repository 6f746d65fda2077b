package limit

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
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
	fieldBanned     = "X-Ratelimit-Banned"
)

// setX sets the fields of XRateLimit.
func setX(h http.Header, d *ratelimit.Decision) {
	if !metered(d.Plan) {
		if d.Outcome == ratelimit.Suspended {
			h[fieldLimit], h[fieldRemaining] = []string{"0"}, []string{"0"}
			delete(h, fieldReset) // of a middleware further out
		}
		return
	}
	// One array holds the values and one string the digits, so that four fields
	// cost two allocations. The slices are capped, so that appending to one does
	// not write into the next.
	v := new([4]string)
	var digits [84]byte
	b := strconv.AppendInt(digits[:0], d.Limit(), 10)
	limit := len(b)
	b = strconv.AppendInt(b, d.Remaining(), 10)
	remaining := len(b)
	b = strconv.AppendInt(b, d.Reset(), 10)
	reset := len(b)
	if !d.Allowed() {
		b = strconv.AppendInt(b, secondsUp(d.RetryAfter), 10)
	}
	s := string(b)
	v[0], v[1], v[2] = s[:limit], s[limit:remaining], s[remaining:reset]
	h[fieldLimit] = v[0:1:1]
	h[fieldRemaining] = v[1:2:2]
	h[fieldReset] = v[2:3:3]
	if !d.Allowed() {
		v[3] = s[reset:]
		h[fieldRetryAfter] = v[3:4:4]
	}
}

// maxInteger is the largest integer of a structured field (RFC 9651 section 3.3.1).
const maxInteger = 999_999_999_999_999

// setDraft sets the fields of DraftRateLimit for d, or for all decisions if there are
// several.
func setDraft(h http.Header, d *ratelimit.Decision, all []ratelimit.Decision) {
	var room [160]byte
	policy, states := "", room[:0]
	if len(all) == 0 {
		policy, states = addDraft(policy, states, d)
	}
	for i := range all {
		policy, states = addDraft(policy, states, &all[i])
	}
	if policy != "" {
		h[fieldPolicy], h[fieldDraft] = []string{policy}, []string{string(states)}
	}
}

// addDraft adds the quotas of one decision to the values of the draft's fields.
func addDraft(policy string, b []byte, d *ratelimit.Decision) (string, []byte) {
	if !metered(d.Plan) {
		return policy, b
	}
	t := textsOf(d.Plan)
	if t == nil {
		t = newTexts(d.Plan)
	}
	if policy != "" {
		policy += ", "
	}
	for i := range engine.Of(d.Plan).Len() {
		if hidden(d.Plan, i) {
			continue
		}
		if len(b) > 0 {
			b = append(b, ", "...)
		}
		left, reset := max(d.Plan.Numbers().Quota(i).Shown-d.Used(i), 0), d.States[i].Reset
		if d.Outcome == ratelimit.Banned {
			left, reset = 0, max(reset, d.BanEnds)
		}
		b = append(b, '"')
		b = append(b, t.names[i]...)
		b = append(b, `";r=`...)
		b = strconv.AppendInt(b, min(left, maxInteger), 10)
		b = append(b, ";t="...)
		b = strconv.AppendInt(b, max(reset-d.Time/int64(time.Second), 0), 10) // rounded up
	}
	return policy + t.policy, b
}

// hidden reports whether the fields leave the i-th quota of p out: a soft one beside others.
func hidden(p *ratelimit.Plan, i int) bool {
	return p.Numbers().Hard && p.Numbers().Quota(i).IsSoft()
}

// policyName is the name of the i-th quota of p in the draft's fields.
func policyName(p *ratelimit.Plan, i int) string {
	name := fixedwindow.Kind(engine.Of(p).Kind(i)).Name()
	if p.Scope() != "" {
		name = p.Scope() + "-" + name
	}
	return name
}

// A HeaderSet selects header fields that tell a client what it has left. Sets are
// combined with |. The zero HeaderSet is [XRateLimit].
type HeaderSet uint8

const (
	// XRateLimit is X-RateLimit-Limit, -Remaining and -Reset, all three of the applicable
	// quota. Reset is Unix time in seconds. If the plan is suspended, there are only Limit
	// and Remaining, which are 0.
	XRateLimit HeaderSet = 1

	// DraftRateLimit is RateLimit-Policy and RateLimit of
	// draft-ietf-httpapi-ratelimit-headers-11 (sections 3 and 4). Each is a List of Strings,
	// one for each quota. A soft quota is left out beside one that is not soft. The first field has
	// the quota q and the window w in seconds, the second what remains, r, for the next t seconds.
	// A calendar window has no w, since its length varies. Of a smooth quota r is what can be used
	// at once, and t the time until that is the whole burst. The largest number in such a field is
	// 999999999999999, which also stands for larger ones. If a request has several charges, the
	// fields list the quotas of all that were decided: give the plans of [ratelimit.Caller].Also
	// scopes, so that the names differ. The draft may still change.
	DraftRateLimit HeaderSet = 2

	// NoHeaders is none of them. It is not combined with others.
	NoHeaders HeaderSet = 4
)

// Set sets the fields of s in h. If the request was denied, it also sets Retry-After (RFC 9110
// section 10.2.3) in seconds, rounded up. A client that waits that long is admitted, unless
// something else uses the quota meanwhile. If the client is banned, X-RateLimit-Banned is
// "true", by which package transport knows a ban whatever the body is. Set does nothing if d
// has no Plan, or an unlimited one. Of a request with several charges, all are the decisions
// about them, which DraftRateLimit lists, and d is the one to show, as engine.Deciding finds
// it.
func (s HeaderSet) Set(h http.Header, d *ratelimit.Decision, all ...ratelimit.Decision) {
	if d.Outcome == ratelimit.Banned && metered(d.Plan) {
		h[fieldBanned] = []string{"true"}
	}
	switch {
	case s == 0 || s&XRateLimit != 0:
		setX(h, d)
	case d.Plan != nil && d.RetryAfter > 0:
		h[fieldRetryAfter] = []string{strconv.FormatInt(secondsUp(d.RetryAfter), 10)}
	}
	if s&DraftRateLimit != 0 {
		setDraft(h, d, all)
	}
}

// secondsUp returns d in whole seconds, rounded up: an engine written elsewhere may name
// any time to wait.
func secondsUp(d time.Duration) int64 {
	return int64((min(d, math.MaxInt64-time.Second) + time.Second - 1) / time.Second)
}
