package limittest

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
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

	// Headers are the fields that the service sets, as in ratelimit.Options. 0 means
	// [ratelimit.XRateLimit].
	Headers ratelimit.HeaderSet
}

// CheckHeaders fails the test if the header of a response does not have Retry-After and
// the fields of want.Headers as want says, each once, as whole numbers:
//
//   - In RateLimit and RateLimit-Policy, one quota has Limit and Remaining. Of a smooth
//     quota only Remaining is compared, since these fields do not have its burst. Times
//     are not compared.
//   - With [ratelimit.NoHeaders] all of these fields must be absent.
//
// Fields of other sets are not read. With an engine that reads the system's clock
// RetryAfter depends on the time at which the test runs; use a [Clock] or testing/synctest.
func CheckHeaders(t testing.TB, h http.Header, want Fields) {
	t.Helper()
	if err := errors.Join(wrong(h, want)...); err != nil {
		t.Errorf("header of the response: %v", err)
	}
}

// wrong returns how a header differs from what want says. Some of the errors may be nil.
func wrong(h http.Header, want Fields) (errs []error) {
	set := cmp.Or(want.Headers, ratelimit.XRateLimit)
	want.Headers = 0
	got, err := read(h, set&ratelimit.XRateLimit != 0)
	if err != nil {
		return []error{err}
	}
	if want.RetryAfter == 0 && got.RetryAfter == 0 && lines(h, "Retry-After") != nil {
		errs = append(errs, errors.New("Retry-After is 0, and should be absent"))
	}
	switch {
	case set&ratelimit.XRateLimit != 0:
		if want.Limit > 0 && got == (Fields{RetryAfter: got.RetryAfter}) && lines(h, "RateLimit") != nil {
			return append(errs, errors.New("RateLimit and no X-RateLimit-*: if the service is to send these, set Fields.Headers to ratelimit.DraftRateLimit"))
		}
		errs = append(errs, wrongReset(h, &got, want))
	case !want.Reset.IsZero():
		return append(errs, errors.New("Fields.Reset is X-RateLimit-Reset, which Fields.Headers does not select"))
	case set != ratelimit.NoHeaders:
		got.Limit, got.Remaining = want.Limit, want.Remaining // what the draft says is compared below
	}
	if got != want {
		errs = append(errs, fmt.Errorf("%v, want %v", got, want))
	}
	if set&ratelimit.DraftRateLimit != 0 {
		errs = append(errs, wrongDraft(h, want))
	}
	if set == ratelimit.NoHeaders {
		errs = append(errs, unwanted(h))
	}
	return errs
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

// unwanted returns which fields a header has, of those that no service with
// [ratelimit.NoHeaders] sends.
func unwanted(h http.Header) error {
	for _, name := range []string{
		"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "RateLimit", "RateLimit-Policy",
	} {
		if got := lines(h, name); got != nil {
			return fmt.Errorf("%s: %q, want none with ratelimit.NoHeaders", name, got)
		}
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
	if f == (Fields{Headers: f.Headers}) {
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
