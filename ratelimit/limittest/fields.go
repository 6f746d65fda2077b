package limittest

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Fields are what the header fields of a response tell its client. A field that is absent
// is 0: the zero value is a response to an exempt caller, or under a plan without quotas.
type Fields struct {
	Limit      int64         // X-RateLimit-Limit
	Remaining  int64         // X-RateLimit-Remaining
	RetryAfter time.Duration // Retry-After; 0: the field must be absent

	// Reset is X-RateLimit-Reset. The zero time means any: the field must be there, but
	// depends on the time at which the test runs.
	Reset time.Time
}

// CheckHeaders fails the test if the header of a response does not have the X-RateLimit-*
// fields and the Retry-After that want says, each once, as whole numbers. It does not read
// the fields of [ratelimit.DraftRateLimit]. With an engine that reads the system's clock
// RetryAfter depends on the time at which the test runs; use a [Clock] or testing/synctest.
func CheckHeaders(t testing.TB, h http.Header, want Fields) {
	t.Helper()
	got, err := read(h)
	missing := missingOf(h, "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
	switch {
	case err != nil:
		t.Errorf("header of the response: %v", err)
		return
	case want.Limit > 0 && got == (Fields{RetryAfter: got.RetryAfter}) && h["Ratelimit"] != nil:
		t.Errorf("header of the response: RateLimit and no X-RateLimit-*: CheckHeaders does not read the fields of ratelimit.DraftRateLimit")
		return
	case want.Limit > 0 && (len(missing) == 1 || len(missing) == 2):
		t.Errorf("header of the response: no %s", strings.Join(missing, ", no "))
	case want.Limit > 0 && len(missing) == 0 && got.Reset.IsZero():
		t.Errorf("header of the response: X-RateLimit-Reset is 0, which is not a time")
	case want.RetryAfter == 0 && got.RetryAfter == 0 && lines(h, "Retry-After") != nil:
		t.Errorf("header of the response: Retry-After is 0, and should be absent")
	case want.Reset.IsZero() && want.Limit > 0:
		got.Reset = time.Time{}
	case got.Reset.Equal(want.Reset):
		got.Reset = want.Reset // they may differ in their locations
	}
	if got != want {
		t.Errorf("header of the response: %v, want %v", got, want)
	}
}

// read returns what a header says.
func read(h http.Header) (f Fields, err error) {
	var seconds, unix int64
	for _, field := range []struct {
		name  string
		value *int64
	}{
		{"X-RateLimit-Limit", &f.Limit},
		{"X-RateLimit-Remaining", &f.Remaining},
		{"X-RateLimit-Reset", &unix},
		{"Retry-After", &seconds},
	} {
		lines := lines(h, field.name)
		if len(lines) == 0 {
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
