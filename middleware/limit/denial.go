package limit

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// The problem types of draft-ietf-httpapi-ratelimit-headers-11 sections 5.1 and
// 5.3.
const (
	typeQuotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	typeAbnormalUsage = "https://iana.org/assignments/http-problem-types#abnormal-usage-detected"
)

// Denial returns the error that the middleware answers a request of c with if d says that it
// is limited, banned or suspended. It is for services without the middleware. The error is an
// [apierror.Error] with the Code, Status, Message and RetryAfter of the response. If the plan
// has a scope, the text speaks of that, and otherwise to the client. If requests differ in
// cost, the text of a limited request counts units, otherwise requests. Denial returns nil if
// the request was admitted. For a decision that is neither, such as one that is Skipped, the
// error wraps [ratelimit.ErrUnavailable].
func Denial(c ratelimit.Caller, d *ratelimit.Decision) error {
	switch {
	case d.Allowed():
		return nil
	case !answerable(d):
		return errUnanswerable(d)
	}
	return withWait(denial(c.Kind, d), d)
}

// withWait returns a copy of the error of d that says how long to wait, in whole seconds as
// the header field does.
func withWait(e *apierror.Error, d *ratelimit.Decision) *apierror.Error {
	c := *e
	c.RetryAfter = time.Duration(secondsUp(d.RetryAfter)) * time.Second
	return &c
}

// denial returns the error of an answerable decision without its RetryAfter, so that many
// responses share it.
func denial(kind ratelimit.Kind, d *ratelimit.Decision) *apierror.Error {
	scope := ""
	if d.Plan != nil {
		scope = d.Plan.Scope()
	}
	switch {
	case d.Outcome == ratelimit.Suspended && scope == "":
		return planSuspended
	case d.Outcome == ratelimit.Suspended:
		return suspended(scope)
	case d.Outcome == ratelimit.Banned:
		return banned(kind, scope, cmp.Or(d.BanReason(), engine.ReasonStrikes))
	}
	weighted, t := d.CountsUnits || d.Cost != 1, textsOf(d.Plan)
	if weighted || d.StrikesLeft > maxCachedStrikes || t == nil {
		return limitedError(d, weighted)
	}
	return t.denial(d)
}

// answerable reports whether a decision of an engine that is not Allowed is a denial that
// a client can be told: an engine written elsewhere may return another.
func answerable(d *ratelimit.Decision) bool {
	switch d.Outcome {
	case ratelimit.Limited, ratelimit.Banned:
		return d.Plan != nil && d.RetryAfter > 0 && d.Applicable >= 0 && d.Applicable < engine.Of(d.Plan).Len()
	}
	return d.Outcome == ratelimit.Suspended
}

func errUnanswerable(d *ratelimit.Decision) error {
	return fmt.Errorf("limit: %w: a decision that cannot be answered, with the outcome %v", ratelimit.ErrUnavailable, d.Outcome)
}

// refusing returns the quotas with less left than the request costs, as bits.
func refusing(d *ratelimit.Decision) (set uint) {
	for i := range engine.Of(d.Plan).Len() {
		if d.States[i].Remaining < d.Cost {
			set |= 1 << i
		}
	}
	return set
}

func limitedError(d *ratelimit.Decision, weighted bool) *apierror.Error {
	text := limitReachedText(d)
	if weighted {
		text = unitsLeftText(d)
	}
	text += " Wait as long as Retry-After says."
	banned := " before then may get " + said(d.Plan.Scope(), "you", "this %s") + " banned."
	switch {
	case d.StrikesLeft == 0:
		text += " Any further request" + banned
	case d.StrikesLeft > 0:
		text += " More than " + counted(int64(d.StrikesLeft), "further request") + banned
	}
	var violated []string
	for i, set := 0, refusing(d); set>>i > 0; i++ {
		if set>>i&1 == 1 {
			violated = append(violated, policyName(d.Plan, i))
		}
	}
	return &apierror.Error{
		Status: http.StatusTooManyRequests, Code: "rate_limit_exceeded", Message: text, Args: limitArgs(d),
		ProblemType: typeQuotaExceeded, ProblemTitle: "Quota Exceeded", ViolatedPolicies: violated,
	}
}

// limitArgs are the values in the text of a limited request.
func limitArgs(d *ratelimit.Decision) map[string]any {
	q := engine.Of(d.Plan).Quota(d.Applicable)
	args := map[string]any{"quota": q.String(), "limit": atOnce(q), "cost": d.Cost, "remaining": d.States[d.Applicable].Remaining, "scope": d.Plan.Scope()}
	if d.StrikesLeft >= 0 {
		args["strikes"] = d.StrikesLeft
	}
	return args
}

// said returns what a text says of the client, or of the scope of the plan if it has one.
func said(scope, client, other string) string {
	if scope == "" {
		return client
	}
	return strings.Replace(other, "%s", scope, 1)
}

// limitReachedText is for requests that cost one unit each.
func limitReachedText(d *ratelimit.Decision) string {
	q := engine.Of(d.Plan).Quota(d.Applicable)
	return said(d.Plan.Scope(), "You have", "This %s has") + " reached the limit of " + counted(q.Limit, "request") + " per " + perWindow(q) + atMost(q) + "."
}

// unitsLeftText is for requests that differ in cost, so that some of the limit may
// be left.
func unitsLeftText(d *ratelimit.Decision) string {
	q, left := engine.Of(d.Plan).Quota(d.Applicable), d.States[d.Applicable].Remaining
	text := "This request costs " + counted(d.Cost, "unit") + ", and "
	rest, of, verb := strconv.FormatInt(left, 10), counted(q.Limit, "unit")+" per "+perWindow(q)+said(d.Plan.Scope(), "", " of this %s"), " are "
	if left == 1 {
		verb = " is "
	}
	switch {
	case q.Burst() > 0:
		return text + rest + verb + "left now of the limit of " + of + atMost(q) + "."
	case left == 0 && q.Limit == 1:
		return text + "the " + of + " is used up."
	case left == 0:
		return text + "all " + of + " are used up."
	default:
		return text + rest + " of the " + of + verb + "left."
	}
}

// costExceedsLimit is the error for a request that costs more than a whole quota of
// the plan.
func costExceedsLimit(d *ratelimit.Decision) *apierror.Error {
	e := apierror.New(http.StatusBadRequest, "cost_exceeds_limit",
		"This request costs "+counted(d.Cost, "unit")+", which is more than this service can count.")
	e.Args = map[string]any{"cost": d.Cost, "scope": d.Plan.Scope()} // the engine has lower limits than the plan
	for i, q := range d.Plan.Quotas() {
		if d.Cost > d.Plan.Numbers().Quota(i).AtOnce() {
			most := strconv.FormatInt(q.Limit, 10) + " per " + perWindow(q)
			if q.Burst() > 0 {
				most = strconv.FormatInt(q.Burst(), 10) + " at once"
			}
			e.Message = "This request costs " + counted(d.Cost, "unit") + ", but " + said(d.Plan.Scope(), "your plan", "the plan of this %s") + " allows at most " + most + "."
			e.Args["quota"], e.Args["limit"] = q.String(), atOnce(q)
			break
		}
	}
	return e
}

var (
	strikesBans   = commonBans(engine.ReasonStrikes) // by the Kind of the caller
	bansByHand    = commonBans(engine.ReasonByHand)
	planSuspended = suspended("").Preencoded()
	unavailable   = &apierror.Error{
		Status: http.StatusServiceUnavailable, Code: "unavailable", RetryAfter: time.Second,
		Message: "The service cannot check your rate limit at the moment. Wait as long as Retry-After says.",
	}
)

func suspended(scope string) *apierror.Error {
	e := apierror.New(http.StatusForbidden, "plan_suspended",
		said(scope, "Your plan", "The plan of this %s")+" is suspended and allows no requests. Contact the operator of this service.")
	e.Args = map[string]any{"scope": scope}
	return e
}

func commonBans(reason string) (all [3]*apierror.Error) {
	for kind := range all {
		all[kind] = newBan(ratelimit.Kind(kind), "", reason).Preencoded()
	}
	return all
}

func banned(kind ratelimit.Kind, scope, reason string) *apierror.Error {
	switch {
	case scope != "" || int(kind) >= len(strikesBans):
	case reason == engine.ReasonStrikes:
		return strikesBans[kind]
	case reason == engine.ReasonByHand:
		return bansByHand[kind]
	}
	return newBan(kind, scope, reason)
}

func newBan(kind ratelimit.Kind, scope, reason string) *apierror.Error {
	code, args := apierror.Code("client_banned"), map[string]any{"scope": scope, "reason": reason}
	text, because := "You are temporarily banned", "you kept sending requests after reaching your limit"
	if kind == ratelimit.KindAPIKey {
		code, scope = "api_key_banned", cmp.Or(scope, "API key")
	}
	switch {
	case scope != "":
		text, because = "This "+scope+" is temporarily banned", "it kept sending requests after reaching its limit"
	case kind == ratelimit.KindNetwork:
		text = "Your network is temporarily banned from sending requests without a valid API key"
		because = "it kept sending them after reaching its limit"
	}
	switch {
	case reason == engine.ReasonStrikes:
		text += " because " + because + "."
	case reason == engine.ReasonByHand:
		text += " by the operator of this service."
	case strings.ContainsAny(reason[len(reason)-1:], ".!?"):
		text += ": " + reason
	default:
		text += ": " + reason + "."
	}
	return &apierror.Error{
		Status: http.StatusTooManyRequests, Code: code, Message: text + " Wait as long as Retry-After says.", Args: args,
		ProblemType: typeAbnormalUsage, ProblemTitle: "Abnormal Usage Detected",
	}
}

// counted returns "1 request", "2 requests".
func counted(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.FormatInt(n, 10) + " " + noun
}

// perWindow is the window as it follows "per": "minute", "15 minutes".
func perWindow(q ratelimit.Quota) string {
	n, unit := fixedwindow.Units(q.Window)
	if n == 1 {
		return unit
	}
	return counted(n, unit)
}

// atOnce is the largest number of units that can be used at once.
func atOnce(q ratelimit.Quota) int64 { return cmp.Or(q.Burst(), q.Limit) }

// atMost follows the limit and the window in texts.
func atMost(q ratelimit.Quota) string {
	if q.Burst() == 0 {
		return ""
	}
	return ", at most " + strconv.FormatInt(q.Burst(), 10) + " at once"
}
