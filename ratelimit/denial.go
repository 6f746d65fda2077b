package ratelimit

import (
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/animalstore/gatehouse/apierror"
)

// denialCache holds the errors of a plan's limited requests, made when they are first
// needed and kept for floods of such requests: by the set of quotas that refuse, and
// the strikes left, plus one.
type denialCache [1 << MaxQuotas]atomic.Pointer[[maxCachedStrikes + 2]atomic.Pointer[cachedDenial]]

const maxCachedStrikes = 30

type cachedDenial struct {
	applicable int // the quota in the text
	err        *apierror.Error
}

// The problem types of draft-ietf-httpapi-ratelimit-headers-11 sections 5.1 and
// 5.3.
const (
	typeQuotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	typeAbnormalUsage = "https://iana.org/assignments/http-problem-types#abnormal-usage-detected"
)

// Error returns the error that the middleware answers a request of c with if it is
// limited, banned or suspended, for services that write the answer themselves
// (Options.Deny) or have no middleware: its Code, Status and Message are those of the
// response. It returns nil for any other decision, and for a limited one without a Plan.
// If requests differ in cost, the text of a limited request counts units, otherwise
// requests.
func (d *Decision) Error(c Caller) *apierror.Error {
	weighted := d.Weighted || d.Cost != 1
	switch {
	case d.Outcome == Suspended:
		return planSuspended
	case d.Outcome == Banned && c.Kind == KindNetwork:
		return networkBanned
	case d.Outcome == Banned && c.Kind == KindAPIKey:
		return keyBanned
	case d.Outcome == Banned:
		return clientBanned
	case d.Outcome != Limited || d.Plan == nil:
		return nil
	case weighted || d.StrikesLeft > maxCachedStrikes:
		return limitedError(d, weighted)
	}
	slot := &d.Plan.denials[d.refusing()]
	table := slot.Load()
	if table == nil {
		slot.CompareAndSwap(nil, new([maxCachedStrikes + 2]atomic.Pointer[cachedDenial]))
		table = slot.Load()
	}
	kept := &table[max(d.StrikesLeft, -1)+1]
	if k := kept.Load(); k != nil && k.applicable == d.Applicable {
		return k.err
	}
	e := limitedError(d, false).Preencoded()
	kept.Store(&cachedDenial{d.Applicable, e})
	return e
}

// answerable reports whether a decision of an engine that is not Allowed is a denial that
// a client can be told: an engine written elsewhere may return another.
func (d *Decision) answerable() bool {
	switch d.Outcome {
	case Limited, Banned:
		return d.Plan != nil && d.RetryAfter > 0 && d.Applicable >= 0 && d.Applicable < len(d.Plan.quotas)
	}
	return d.Outcome == Suspended
}

// refusing returns the quotas with less left than the request costs, as bits.
func (d *Decision) refusing() (set uint) {
	for i := range d.Plan.Len() {
		if d.States[i].Remaining < d.Cost {
			set |= 1 << i
		}
	}
	return set
}

func limitedError(d *Decision, weighted bool) *apierror.Error {
	text := limitReachedText(d)
	if weighted {
		text = unitsLeftText(d)
	}
	text += " Wait as long as Retry-After says."
	switch {
	case d.StrikesLeft == 0:
		text += " Any further request before then may get you banned."
	case d.StrikesLeft > 0:
		text += " More than " + counted(int64(d.StrikesLeft), "further request") + " before then may get you banned."
	}
	var violated []string
	for i, set := 0, d.refusing(); set>>i > 0; i++ {
		if set>>i&1 == 1 {
			violated = append(violated, d.Plan.quotas[i].policyName())
		}
	}
	return apierror.New(http.StatusTooManyRequests, apierror.CodeRateLimitExceeded, text).
		WithProblem(apierror.Problem{Type: typeQuotaExceeded, Title: "Quota Exceeded", ViolatedPolicies: violated})
}

// limitReachedText is for requests that cost one unit each.
func limitReachedText(d *Decision) string {
	q := d.Plan.quotas[d.Applicable]
	return "You have reached the limit of " + counted(q.Limit, "request") + " per " + q.perWindow() + q.atMost() + "."
}

// unitsLeftText is for requests that differ in cost, so that some of the limit may
// be left.
func unitsLeftText(d *Decision) string {
	q, left := d.Plan.quotas[d.Applicable], d.States[d.Applicable].Remaining
	text := "This request costs " + counted(d.Cost, "unit") + ", and "
	switch {
	case q.burst > 0:
		return text + smoothLeftText(q, left)
	case left == 0 && q.Limit == 1:
		return text + "the 1 unit per " + q.perWindow() + " is used up."
	case left == 0:
		return text + "all " + counted(q.Limit, "unit") + " per " + q.perWindow() + " are used up."
	case left == 1:
		return text + "1 of the " + counted(q.Limit, "unit") + " per " + q.perWindow() + " is left."
	default:
		return text + strconv.FormatInt(left, 10) + " of the " + counted(q.Limit, "unit") + " per " + q.perWindow() + " are left."
	}
}

// costExceedsLimit is the error for a request that costs more than a whole quota of
// the plan.
func costExceedsLimit(d *Decision) *apierror.Error {
	for _, q := range d.Plan.quotas {
		if d.Cost > q.atOnce() {
			return apierror.New(http.StatusBadRequest, apierror.CodeCostExceedsLimit,
				"This request costs "+counted(d.Cost, "unit")+", but your plan allows at most "+
					strconv.FormatInt(q.atOnce(), 10)+q.perWindowOrAtOnce()+".")
		}
	}
	// The engine has lower limits than the plan.
	return apierror.New(http.StatusBadRequest, apierror.CodeCostExceedsLimit,
		"This request costs "+counted(d.Cost, "unit")+", which is more than this service can count.")
}

var (
	abnormalUsage = apierror.Problem{Type: typeAbnormalUsage, Title: "Abnormal Usage Detected"}

	keyBanned = apierror.New(http.StatusTooManyRequests, apierror.CodeAPIKeyBanned,
		"This API key is temporarily banned because it kept sending requests after reaching its limit. "+
			"Wait as long as Retry-After says.").WithProblem(abnormalUsage).Preencoded()
	clientBanned = apierror.New(http.StatusTooManyRequests, apierror.CodeClientBanned,
		"You are temporarily banned because you kept sending requests after reaching your limit. "+
			"Wait as long as Retry-After says.").WithProblem(abnormalUsage).Preencoded()
	networkBanned = apierror.New(http.StatusTooManyRequests, apierror.CodeClientBanned,
		"Your network is temporarily banned from sending requests without a valid API key "+
			"because it kept sending them after reaching its limit. "+
			"Wait as long as Retry-After says.").WithProblem(abnormalUsage).Preencoded()
	planSuspended = apierror.New(http.StatusForbidden, apierror.CodePlanSuspended,
		"Your plan is suspended and allows no requests. Contact the operator of this service.").Preencoded()
	unavailable = apierror.New(http.StatusServiceUnavailable, apierror.CodeUnavailable,
		"The service cannot check your rate limit at the moment. Wait as long as Retry-After says.")
)

// counted returns "1 request", "2 requests".
func counted(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.FormatInt(n, 10) + " " + noun
}

// perWindow is the window as it follows "per": "minute", "15 minutes".
func (q Quota) perWindow() string {
	if q.Calendar() {
		return q.windowName()
	}
	for i := len(namedWindows) - 1; ; i-- {
		if n := namedWindows[i]; q.Window%n.window == 0 {
			if q.Window == n.window {
				return n.word
			}
			return counted(int64(q.Window/n.window), n.word)
		}
	}
}
