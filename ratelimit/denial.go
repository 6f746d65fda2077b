package ratelimit

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/apierror"
)

// denials are the errors of a plan's limited requests, made when they are first
// needed, by the quota that refuses and the strikes left, plus one. Floods of
// refused requests are what they are kept for.
type denials [MaxQuotas][keptStrikes + 2]atomic.Pointer[apierror.Error]

const keptStrikes = 30

// denial returns the error for a request that was limited or banned. How long to
// wait is in Retry-After, so that the text depends on little.
func denial(c Caller, d *Decision) *apierror.Error {
	switch {
	case d.Outcome == Banned && c.Network:
		return clientBanned
	case d.Outcome == Banned:
		return keyBanned
	case d.StrikesLeft > keptStrikes:
		return limitedError(d)
	}
	kept := &d.Plan.denials[d.Applicable][max(d.StrikesLeft, -1)+1]
	if e := kept.Load(); e != nil {
		return e
	}
	e := limitedError(d).Prepared()
	kept.Store(e)
	return e
}

func limitedError(d *Decision) *apierror.Error {
	text := "The limit of " + d.Plan.limits[d.Applicable] + " requests per " + d.Plan.quotas[d.Applicable].per() +
		" is used up. Wait as long as Retry-After says."
	switch {
	case d.StrikesLeft == 1:
		text += " One more request before that is endured, then a ban follows."
	case d.StrikesLeft >= 0:
		text += " " + strconv.Itoa(d.StrikesLeft) + " more requests before that are endured, then a ban follows."
	}
	return apierror.New(http.StatusTooManyRequests, apierror.CodeRateLimitExceeded, text)
}

var (
	keyBanned = apierror.New(http.StatusTooManyRequests, apierror.CodeAPIKeyBanned,
		"This API key is banned for a time, since requests went on after its limit was used up. Wait as long as Retry-After says.").Prepared()
	clientBanned = apierror.New(http.StatusTooManyRequests, apierror.CodeClientBanned,
		"Requests without a valid API key are banned from your network for a time, since they went on after the limit was used up. Wait as long as Retry-After says.").Prepared()
	unavailable = apierror.New(http.StatusServiceUnavailable, apierror.CodeUnavailable,
		"The service cannot count this request at the moment. Try again after the time in Retry-After.")
)

// per is the window in the words of a sentence: "minute", "2 seconds".
func (q Quota) per() string {
	for _, n := range named {
		if q.Window == n.window {
			return n.word
		}
	}
	return strconv.FormatInt(int64(q.Window/time.Second), 10) + " seconds"
}
