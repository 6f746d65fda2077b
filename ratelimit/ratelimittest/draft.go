package ratelimittest

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// The members of RateLimit-Policy and of RateLimit, as package middleware/limit writes
// them.
var (
	policySyntax = regexp.MustCompile(`^"([a-z0-9-]+)";q=([0-9]+)(?:;w=[0-9]+)?$`)
	stateSyntax  = regexp.MustCompile(`^"([a-z0-9-]+)";r=([0-9]+);t=[0-9]+$`)
)

// wrongDraft returns how a header differs from what want says.
func wrongDraft(h http.Header, want Fields) error {
	got, err := read(h, false)
	switch {
	case err != nil:
		return err
	case !want.Reset.IsZero():
		return errors.New("Fields.Reset is X-RateLimit-Reset, which CheckDraftHeaders does not read")
	case got.RetryAfter != want.RetryAfter:
		err = fmt.Errorf("Retry-After: %v, want %v", got.RetryAfter, want.RetryAfter)
	}
	return errors.Join(err, wrongRetryAfter(h, got, want), wrongQuotas(h, want))
}

// wrongQuotas returns what is wrong with RateLimit and RateLimit-Policy. They have a
// member for each quota, and one of them is the quota that want is about.
func wrongQuotas(h http.Header, want Fields) error {
	policy, state := lines(h, "RateLimit-Policy"), lines(h, "RateLimit")
	switch {
	case want.Limit == 0 && policy == nil && state == nil:
		return nil
	case want.Limit == 0:
		return fmt.Errorf("RateLimit-Policy: %q and RateLimit: %q, want none", policy, state)
	case len(policy) != 1 || len(state) != 1:
		return fmt.Errorf("%d lines of RateLimit-Policy and %d of RateLimit, want one of each", len(policy), len(state))
	}
	policies, states := strings.Split(policy[0], ", "), strings.Split(state[0], ", ")
	if len(policies) != len(states) {
		return fmt.Errorf("RateLimit-Policy has %d quotas and RateLimit %d: %s and %s", len(policies), len(states), policy[0], state[0])
	}
	limit, remaining := strconv.FormatInt(want.Limit, 10), strconv.FormatInt(want.Remaining, 10)
	found := false
	for i := range policies {
		p, s := policySyntax.FindStringSubmatch(policies[i]), stateSyntax.FindStringSubmatch(states[i])
		if p == nil || s == nil || p[1] != s[1] {
			return fmt.Errorf("RateLimit-Policy and RateLimit do not belong together, or are malformed: %s and %s", policies[i], states[i])
		}
		if (p[2] == limit || strings.HasPrefix(p[1], "smooth-")) && s[2] == remaining {
			found = true
		}
	}
	if !found {
		return fmt.Errorf("RateLimit: %s with RateLimit-Policy: %s, want a quota with %s of %s left", state[0], policy[0], remaining, limit)
	}
	return nil
}
