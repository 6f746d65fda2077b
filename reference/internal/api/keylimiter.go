package api

import (
	"context"
	"errors"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/ratelimit"
)

// A keyLimiter is a limiter that also holds keys to limits of their own. A request with
// such a key is charged to the key and to its owner, or to neither:
//
//   - The key is charged first. If it has nothing left, the owner is only peeked at: it
//     may be banned, or have nothing left for longer.
//   - If the owner has nothing left, the key gets its unit back. Until then another
//     request with the key can be refused, but none is admitted too many.
//   - If giving back fails, as when the process dies or Redis does not answer, the key
//     has one unit less until its window ends.
//
// The decision is that of the two which has less left, and decides the header fields. Two
// or three calls of the limiter are made instead of one. The limits of a key never lead to
// a strike or a ban.
//
// A request of a caller on the allow list is served in any case, so each of the two is
// charged whatever the other one has left.
type keyLimiter struct{ Limiter }

// keyDecisions are the decisions for a key and for its owner on one request.
type keyDecisions struct{ key, owner ratelimit.Decision }

// keyRefundTimeout bounds giving a unit back. The client waits for it.
const keyRefundTimeout = 500 * time.Millisecond

// Take charges the key, if it has limits, and its owner. See [ratelimit.Limiter].
func (l keyLimiter) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	p, ok := limitedKey(ctx, subject)
	if !ok {
		return l.Limiter.Take(ctx, subject, plan, cost)
	}
	key, err := l.Limiter.Take(ctx, keySubject(p), p.Limits, cost)
	if err != nil {
		return key, err
	}
	allowed := requestInfoOf(ctx).allowed
	if !key.Allowed() && !allowed {
		if owner, err := l.Limiter.Peek(ctx, subject, plan); err == nil && hasLessLeft(&owner, &key) {
			return owner, nil
		}
		return key, nil
	}
	owner, err := l.Limiter.Take(ctx, subject, plan, cost)
	if allowed && err == nil {
		return remember(ctx, key, owner), nil
	}
	if err != nil || !owner.Allowed() {
		refundCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyRefundTimeout)
		defer cancel()
		_ = l.Limiter.Refund(refundCtx, keySubject(p), &key) // see above
		return owner, err
	}
	return remember(ctx, key, owner), nil
}

// Peek reports what Take would decide. See [ratelimit.Peeker].
func (l keyLimiter) Peek(ctx context.Context, subject string, plan *ratelimit.Plan) (ratelimit.Decision, error) {
	owner, err := l.Limiter.Peek(ctx, subject, plan)
	p, ok := limitedKey(ctx, subject)
	if !ok || err != nil {
		return owner, err
	}
	key, err := l.Limiter.Peek(ctx, keySubject(p), p.Limits)
	if err != nil {
		return ratelimit.Decision{}, err
	}
	return remember(ctx, key, owner), nil
}

// Refund gives back what Take has charged. See [ratelimit.Refunder].
func (l keyLimiter) Refund(ctx context.Context, subject string, d *ratelimit.Decision) error {
	p, ok := limitedKey(ctx, subject)
	both := requestInfoOf(ctx)
	if !ok || both == nil || both.decided == nil {
		return l.Limiter.Refund(ctx, subject, d)
	}
	return errors.Join(
		l.Limiter.Refund(ctx, keySubject(p), &both.decided.key),
		l.Limiter.Refund(ctx, subject, &both.decided.owner))
}

// limitedKey returns the key of the request that ctx belongs to, if it has limits of its
// own and subject is its owner.
func limitedKey(ctx context.Context, subject string) (apikey.Principal, bool) {
	p, ok := bearer.FromContext[apikey.Principal](ctx)
	return p, ok && p.Limits != nil && p.Subject == subject
}

func keySubject(p apikey.Principal) string { return KeySubject(p.KeyID) }

// KeySubject returns the subject that the limits of a key alone are counted for.
func KeySubject(id string) string { return "key:" + id }

// remember keeps both decisions for the rest of the request and returns the one with less
// left.
func remember(ctx context.Context, key, owner ratelimit.Decision) ratelimit.Decision {
	requestInfoOf(ctx).decided = &keyDecisions{key, owner}
	if hasLessLeft(&key, &owner) {
		return key
	}
	return owner
}

// hasLessLeft reports whether a says more than b about when the client can go on. A ban
// says most: every request during a ban is answered with it.
func hasLessLeft(a, b *ratelimit.Decision) bool {
	switch {
	case (a.Outcome == ratelimit.Banned) != (b.Outcome == ratelimit.Banned):
		return a.Outcome == ratelimit.Banned
	case a.Allowed() != b.Allowed():
		return !a.Allowed()
	case a.RetryAfter != b.RetryAfter:
		return a.RetryAfter > b.RetryAfter
	case a.Remaining() != b.Remaining():
		return a.Remaining() < b.Remaining()
	default:
		return a.Reset() > b.Reset()
	}
}
