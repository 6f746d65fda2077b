package ratelimittest

import (
	"errors"
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
// is 0: the zero value is a response under a plan without quotas.
type Fields struct {
	Limit      int64         // X-RateLimit-Limit
	Remaining  int64         // X-RateLimit-Remaining
	RetryAfter time.Duration // Retry-After; 0: the field must be absent
}

// CheckHeaders fails the test if the header of a response does not have Retry-After and
// X-RateLimit-Limit and -Remaining as want says, each once, as whole numbers. Beside a Limit
// there must be X-RateLimit-Reset, a time. With an engine that reads the system's clock
// RetryAfter depends on the time at which the test runs; use a [Clock] or testing/synctest.
func CheckHeaders(t testing.TB, h http.Header, want Fields) {
	t.Helper()
	if err := wrong(h, want); err != nil {
		t.Errorf("header of the response: %v", err)
	}
}

// wrong returns how a header differs from what want says.
func wrong(h http.Header, want Fields) error {
	var seconds, limit, remaining, reset int64
	var missing []string
	for _, field := range []struct {
		name  string
		value *int64
	}{
		{"Retry-After", &seconds},
		{"X-RateLimit-Limit", &limit},
		{"X-RateLimit-Remaining", &remaining},
		{"X-RateLimit-Reset", &reset},
	} {
		there, err := read(h, field.name, field.value)
		if err != nil {
			return err
		}
		if !there {
			missing = append(missing, field.name)
		}
	}
	got := Fields{limit, remaining, time.Duration(seconds) * time.Second}
	var errs []error
	absent := func(name string) bool { return slices.Contains(missing, name) }
	switch {
	case want.RetryAfter == 0 && seconds == 0 && !absent("Retry-After"):
		errs = append(errs, errors.New("Retry-After is 0, and should be absent"))
	case reset == 0 && !absent("X-RateLimit-Reset"):
		errs = append(errs, errors.New("X-RateLimit-Reset is 0, which is not a time"))
	case want.Limit == 0 && reset != 0:
		errs = append(errs, errors.New("X-RateLimit-Reset should be absent"))
	}
	if missing = slices.DeleteFunc(missing, func(name string) bool { return name == "Retry-After" }); want.Limit > 0 && len(missing) > 0 {
		errs = append(errs, fmt.Errorf("no %s", strings.Join(missing, ", no ")))
	}
	if got != want {
		errs = append(errs, fmt.Errorf("%v, want %v", got.text(), want.text()))
	}
	return errors.Join(errs...)
}

// read reads one field, a whole number without a sign. It reports whether the field is there.
func read(h http.Header, name string, value *int64) (bool, error) {
	var lines []string
	for key, values := range h { // a handler may set a name that is not in the canonical form
		if strings.EqualFold(key, name) {
			lines = append(lines, values...)
		}
	}
	switch {
	case len(lines) == 0:
		return false, nil
	case len(lines) > 1:
		return true, fmt.Errorf("%d lines of %s: %q", len(lines), name, lines)
	}
	n, err := strconv.ParseInt(lines[0], 10, 64)
	if err != nil || strings.Trim(lines[0], "0123456789") != "" || name == "Retry-After" && n > int64(math.MaxInt64/time.Second) {
		return true, fmt.Errorf("%s: %q is not a whole number", name, lines[0])
	}
	*value = n
	return true, nil
}

// text is "59 of 60 left", "0 of 60 left, retry after 17s" or "no fields".
func (f Fields) text() string {
	if f == (Fields{}) {
		return "no fields"
	}
	text := fmt.Sprintf("%d of %d left", f.Remaining, f.Limit)
	if f.RetryAfter != 0 {
		text += fmt.Sprintf(", retry after %v", f.RetryAfter)
	}
	return text
}
