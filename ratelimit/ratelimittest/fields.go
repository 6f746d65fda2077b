package ratelimittest

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Fields are what the header fields of a response tell its client. A field that is absent
// is 0: the zero value is a response under a plan without quotas.
type Fields struct {
	Limit      int64         // X-RateLimit-Limit
	Remaining  int64         // X-RateLimit-Remaining
	RetryAfter time.Duration // Retry-After; 0: the field must be absent

	// Reset is X-RateLimit-Reset. The zero time means any: the field must be there, but
	// depends on the time at which the test runs.
	Reset time.Time
}

// CheckHeaders fails the test if the header of a response does not have Retry-After and
// X-RateLimit-Limit, -Remaining and -Reset as want says, each once, as whole numbers. With
// an engine that reads the system's clock RetryAfter depends on the time at which the test
// runs; use a [Clock] or testing/synctest.
func CheckHeaders(t testing.TB, h http.Header, want Fields) {
	t.Helper()
	report(t, wrong(h, want))
}

// CheckDraftHeaders is [CheckHeaders] for RateLimit-Policy and RateLimit: one of their
// quotas has Limit and Remaining, of a smooth quota only Remaining, since these fields do
// not have its burst. Times are not compared, and want.Reset must be zero.
func CheckDraftHeaders(t testing.TB, h http.Header, want Fields) {
	t.Helper()
	report(t, wrongDraft(h, want))
}

func report(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("header of the response: %v", err)
	}
}

// wrong returns how a header differs from what want says.
func wrong(h http.Header, want Fields) error {
	got, err := read(h, true)
	if err != nil {
		return err
	}
	if want.Limit > 0 && got == (Fields{RetryAfter: got.RetryAfter}) && lines(h, "RateLimit") != nil {
		return errors.New("RateLimit and no X-RateLimit-*: if the service is to send these, use CheckDraftHeaders")
	}
	err = errors.Join(wrongRetryAfter(h, got, want), wrongReset(h, &got, want))
	if got != want {
		err = errors.Join(err, fmt.Errorf("%v, want %v", got, want))
	}
	return err
}

// wrongRetryAfter returns an error for a Retry-After of 0.
func wrongRetryAfter(h http.Header, got, want Fields) error {
	if want.RetryAfter == 0 && got.RetryAfter == 0 && lines(h, "Retry-After") != nil {
		return errors.New("Retry-After is 0, and should be absent")
	}
	return nil
}

// wrongReset returns what is wrong with X-RateLimit-Reset, or which of the fields beside
// it are missing. It makes the Reset of got that of want if both mean the same.
func wrongReset(h http.Header, got *Fields, want Fields) error {
	missing := missingOf(h, "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
	switch {
	case want.Limit > 0 && (len(missing) == 1 || len(missing) == 2):
		return fmt.Errorf("no %s", strings.Join(missing, ", no "))
	case !slices.Contains(missing, "X-RateLimit-Reset") && got.Reset.IsZero():
		return errors.New("X-RateLimit-Reset is 0, which is not a time")
	case want.Reset.IsZero() && want.Limit > 0:
		got.Reset = time.Time{}
	case got.Reset.Equal(want.Reset):
		got.Reset = want.Reset // they may differ in their locations
	}
	return nil
}

// read returns Retry-After of a header and, if limit is true, X-RateLimit-*.
func read(h http.Header, limit bool) (f Fields, err error) {
	var seconds, unix int64
	for _, field := range []struct {
		name  string
		value *int64
	}{
		{"Retry-After", &seconds},
		{"X-RateLimit-Limit", &f.Limit},
		{"X-RateLimit-Remaining", &f.Remaining},
		{"X-RateLimit-Reset", &unix},
	} {
		lines := lines(h, field.name)
		if len(lines) == 0 || !limit && field.value != &seconds {
			continue
		}
		if len(lines) > 1 {
			return f, fmt.Errorf("%d lines of %s: %q", len(lines), field.name, lines)
		}
		// No sign, which ParseInt would read, is part of a number.
		*field.value, err = strconv.ParseInt(lines[0], 10, 64)
		if err != nil || strings.Trim(lines[0], "0123456789") != "" || seconds > int64(math.MaxInt64/time.Second) {
			return f, fmt.Errorf("%s: %q is not a whole number", field.name, lines[0])
		}
	}
	f.RetryAfter = time.Duration(seconds) * time.Second
	if unix > 0 {
		f.Reset = time.Unix(unix, 0)
	}
	return f, nil
}

// missingOf returns those of the fields that h does not have.
func missingOf(h http.Header, names ...string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return lines(h, name) != nil })
}

// lines returns the values of a field, however its name is written: a handler that sets a
// name in the map itself, not in the canonical form, sends a line of its own.
func lines(h http.Header, name string) (lines []string) {
	for key, values := range h {
		if strings.EqualFold(key, name) {
			lines = append(lines, values...)
		}
	}
	return lines
}

// String returns "59 of 60 left", "0 of 60 left, retry after 17s" or "no fields".
func (f Fields) String() string {
	if f == (Fields{}) {
		return "no fields"
	}
	text := fmt.Sprintf("%d of %d left", f.Remaining, f.Limit)
	if f.RetryAfter != 0 {
		text += fmt.Sprintf(", retry after %v", f.RetryAfter)
	}
	if !f.Reset.IsZero() {
		text += ", reset at " + f.Reset.Format(time.RFC3339)
	}
	return text
}

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
