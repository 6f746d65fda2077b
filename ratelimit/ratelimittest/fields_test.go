package ratelimittest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

var must = testcheck.NoError

// failures collects what a check reports.
type failures struct {
	testing.TB
	texts []string
}

func (f *failures) Helper() {}

func (f *failures) Errorf(format string, args ...any) {
	f.texts = append(f.texts, fmt.Sprintf(format, args...))
}

func TestCheckHeaders(t *testing.T) {
	fields := func(more ...string) http.Header {
		h := http.Header{}
		h.Set("X-RateLimit-Limit", "60")
		h.Set("X-RateLimit-Remaining", "0")
		h.Set("X-RateLimit-Reset", "1772366460")
		for i := 0; i < len(more); i += 2 {
			h.Add(more[i], more[i+1])
		}
		return h
	}
	without := func(name string) http.Header {
		h := fields()
		h.Del(name)
		return h
	}
	for _, c := range []struct {
		name   string
		header http.Header
		want   ratelimittest.Fields
		fails  string // part of the text; "": it does not fail
	}{
		{"equal", fields(), ratelimittest.Fields{Limit: 60}, ""},
		{"equal with Retry-After", fields("Retry-After", "17"), ratelimittest.Fields{Limit: 60, RetryAfter: 17 * time.Second}, ""},
		{"none", http.Header{}, ratelimittest.Fields{}, ""},
		{"Retry-After alone", http.Header{"Retry-After": {"1"}}, ratelimittest.Fields{RetryAfter: time.Second}, ""},
		{"another limit", fields(), ratelimittest.Fields{Limit: 61}, "0 of 60 left, want 0 of 61 left"},
		{"another remaining", fields(), ratelimittest.Fields{Limit: 60, Remaining: 1}, "0 of 60 left, want 1 of 60 left"},
		{"an unexpected Retry-After", fields("Retry-After", "17"), ratelimittest.Fields{Limit: 60}, "0 of 60 left, retry after 17s, want 0 of 60 left"},
		{"no Retry-After", fields(), ratelimittest.Fields{Limit: 60, RetryAfter: time.Second}, "want 0 of 60 left, retry after 1s"},
		{"an unexpected reset", http.Header{"X-Ratelimit-Reset": {"1772366460"}}, ratelimittest.Fields{}, "X-RateLimit-Reset should be absent"},
		{"unexpected fields", fields(), ratelimittest.Fields{}, "want no fields"},
		{"missing fields", http.Header{}, ratelimittest.Fields{Limit: 60}, "no fields, want 0 of 60 left"},
		{"no reset", without("X-RateLimit-Reset"), ratelimittest.Fields{Limit: 60}, "no X-RateLimit-Reset"},
		{"no remaining", without("X-RateLimit-Remaining"), ratelimittest.Fields{Limit: 60}, "no X-RateLimit-Remaining"},
		{"no limit", without("X-RateLimit-Limit"), ratelimittest.Fields{Limit: 60}, "no X-RateLimit-Limit"},
		{"reset of 0", http.Header{"X-Ratelimit-Limit": {"60"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"0"}},
			ratelimittest.Fields{Limit: 60}, "X-RateLimit-Reset is 0"},
		{"a reset of 0 that should be absent", http.Header{"X-Ratelimit-Reset": {"0"}}, ratelimittest.Fields{}, "X-RateLimit-Reset is 0"},
		{"Retry-After of 0", fields("Retry-After", "0"), ratelimittest.Fields{Limit: 60}, "Retry-After is 0"},
		{"suspended", http.Header{"X-Ratelimit-Limit": {"0"}, "X-Ratelimit-Remaining": {"0"}}, ratelimittest.Fields{}, ""},
		{"a sign", fields("Retry-After", "+17"), ratelimittest.Fields{Limit: 60, RetryAfter: 17 * time.Second}, `"+17" is not a whole number`},
		{"not all seconds are a time", fields("Retry-After", "9999999999999"), ratelimittest.Fields{Limit: 60}, `"9999999999999" is not a whole number`},
		{"twice in two spellings", func() http.Header {
			h := fields()
			h["X-RateLimit-Limit"] = []string{"60"} // as a handler that avoids Header.Set
			return h
		}(), ratelimittest.Fields{Limit: 60}, "2 lines of X-RateLimit-Limit"},
		{"twice", fields("X-RateLimit-Limit", "60"), ratelimittest.Fields{Limit: 60}, "2 lines of X-RateLimit-Limit"},
		{"not a number", fields("Retry-After", "soon"), ratelimittest.Fields{Limit: 60}, `Retry-After: "soon" is not a whole number`},
		{"negative", fields("Retry-After", "-1"), ratelimittest.Fields{Limit: 60}, `Retry-After: "-1" is not a whole number`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := check(t, c.header, c.want)
			if (got == "") != (c.fails == "") || !strings.Contains(got, c.fails) {
				t.Errorf("CheckHeaders reports %q, want %q", got, c.fails)
			}
		})
	}
}

// check returns what CheckHeaders reports.
func check(t *testing.T, h http.Header, want ratelimittest.Fields) string {
	f := &failures{TB: t}
	ratelimittest.CheckHeaders(f, h, want)
	return strings.Join(f.texts, "\n")
}
