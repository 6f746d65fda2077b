package transport_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/transport"
)

const url = "http://api.example.com/pets"

// What the caller gets if the server first gives an answer, and when the second request is
// sent: the same one again if it was refused.
func TestWaitsAsTheServerSays(t *testing.T) {
	for answer, want := range map[string]struct{ got, second string }{
		"429 Retry-After: 17": {"200 served", "17s"},
		"429 Retry-After: 0":  {"200 served", "1s"},
		"429 Date: noon\nRetry-After: Sat, 01 Jan 2000 00:00:17 GMT":                                       {"200 served", "17s"},
		"429 Date: Fri, 31 Dec 1999 20:00:00 GMT\nRetry-After: Fri, 31 Dec 1999 20:00:17 GMT":              {"200 served", "17s"},
		"429 Retry-After: 17\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 946684860":                      {"200 served", "17s"},
		"429 X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1000000017\nDate: Sun, 09 Sep 2001 01:46:40 GMT": {"200 served", "17s"},
		"429 X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 17":                                              {"200 served", "17s"},
		`429 RateLimit: "minute";r=0;t=17, "day";r=5;t=999`:                                                {"200 served", "17s"},
		`429 RateLimit: "minute";r=0;t=0, "day";r=5;t=999`:                                                 {"200 served", "1s"},
		`429 RateLimit: "minute";r=0`:                                                                      {"200 served", "1s"},
		"429 X-RateLimit-Remaining: 4000\nX-RateLimit-Reset: 946688400":                                    {"200 served", "1m0s"}, // of another limit
		"429 X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 0":                                               {"200 served", "1s"},
		"429 X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 946684799":                                       {"200 served", "1s"}, // has passed
		"429":                   {"200 served", "1s"},
		"429 Retry-After: soon": {"200 served", "1s"},
		"403 X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 17": {"200 served", "17s"},
		"403 Retry-After: 17": {"200 served", "17s"},
		"503 Retry-After: 17": {"200 served", "17s"},
		"200 X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 17":              {"200", "17s"},
		"200 Age: 5\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 17":      {"200", "0s"}, // from a cache
		"401 X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 17\n\nwrong key": {"401 wrong key", "17s"},
		"403 \n\nforbidden": {"403 forbidden", "0s"},
		"403 X-RateLimit-Limit: 0\nX-RateLimit-Remaining: 0\n\nsuspended":  {"403 suspended", "0s"},
		"403 X-RateLimit-Remaining: 5\nX-RateLimit-Reset: 17\n\nforbidden": {"403 forbidden", "0s"},
		"500 Retry-After: 17\n\nfailed":                                    {"500 failed", "0s"},
		"503 \n\nunavailable":                                              {"503 unavailable", "0s"},
		"301 Retry-After: 17":                                              {"301", "0s"},
	} {
		inBubble(t, answer, func(t *testing.T) {
			s := newScript(answer, "200 \n\nserved")
			rt := newTransport(t, s, transport.Options{})
			if got := get(t, rt, url); got != want.got {
				t.Errorf("the caller gets %q, want %q", got, want.got)
			}
			if want.got != "200 served" {
				get(t, rt, url)
			}
			s.expect(t, "0s", want.second)
		})
	}
}

// All waits of a request together, with the random time, are no longer than MaxWait and its
// deadline. MaxWait must leave a tenth of each wait to spread clients over; the random time
// doubles with each denial up to 30 seconds.
func TestMaxWait(t *testing.T) {
	const none = time.Duration(0)
	for name, test := range map[string]struct {
		answer            string // to the first requests
		times             int
		maxWait, deadline time.Duration
		arrived           string
		want              string // how the result ends
	}{
		"without a time":           {"429", 20, 5 * time.Minute, none, "0s 1s 3s 7s 15s 31s 1m3s 2m3s 3m3s 4m3s", "longer than Options.MaxWait (5m0s)"},
		"a time":                   {"429 Retry-After: 30", 20, 70 * time.Second, none, "0s 30s 1m0s", "longer than Options.MaxWait (1m10s)"},
		"it does not wait":         {"429 Retry-After: 1", 1, -1, none, "0s", "longer than Options.MaxWait (0s)"},
		"a deadline at the end":    {"429 Retry-After: 50", 1, 0, 50 * time.Second, "0s", "the deadline of the request is earlier"},
		"jitter":                   {"429 Retry-After: 10", 7, time.Hour, none, "0s 11s 23s 37s 55s 1m21s 2m1s 2m41s", "200"},
		"jitter of a long wait":    {"429 Retry-After: 600", 2, time.Hour, none, "0s 11m0s 22m0s", "200"},
		"jitter with less room":    {"429 Retry-After: 10", 7, 22 * time.Second, none, "0s 11s 22s", "longer than Options.MaxWait (22s)"},
		"jitter without room":      {"429 Retry-After: 55", 1, time.Minute, none, "0s", "longer than Options.MaxWait (1m0s)"},
		"jitter with just enough":  {"429 Retry-After: 54", 1, time.Minute, none, "0s 59.4s", "200"},
		"jitter before a deadline": {"429 Retry-After: 50", 1, 0, 51 * time.Second, "0s 51s", "200"},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newScript(slices.Repeat([]string{test.answer}, test.times)...)
			rt := newTransport(t, s, transport.Options{MaxWait: test.maxWait})
			if strings.HasPrefix(name, "jitter") {
				transport.SetJitter(rt, func(most time.Duration) time.Duration { return max(most-1, 0) })
			}
			ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(test.deadline, 24*time.Hour))
			defer cancel()
			r, _ := http.NewRequestWithContext(ctx, "GET", url, nil)
			resp, err := rt.RoundTrip(r)
			got := fmt.Sprint(err)
			if err == nil {
				got = resp.Status
			}
			if !strings.Contains(got, test.want) || errors.Is(err, context.DeadlineExceeded) != strings.Contains(got, "deadline") {
				t.Errorf("the caller gets %q (%v), want %q", got, err, test.want)
			}
			s.expect(t, strings.Fields(test.arrived)...)
		})
	}
}

// The random time is between nothing and the most.
func TestJitterIsRandom(t *testing.T) {
	rt := testcheck.Must(transport.New(transport.Options{}))
	shortest, longest := time.Second, time.Duration(0)
	for range 1000 { // the chance of a failure is 2 * 0.9^1000
		d := transport.Jitter(rt, time.Second)
		shortest, longest = min(shortest, d), max(longest, d)
	}
	if shortest < 0 || shortest > time.Second/10 || longest < time.Second*9/10 || longest > time.Second {
		t.Errorf("random times up to a second are between %v and %v", shortest, longest)
	}
}

// A request fails with what the response says, as do the next ones, which are not sent. The
// body is closed, so that no connection stays open.
func TestFailsFast(t *testing.T) {
	const (
		envelope = "\nContent-Type: application/json\n\n"
		ban      = "429 Retry-After: 60" + envelope + `{"code":"api_key_banned","message":"Banned.","status":429}`
		day      = "429 Retry-After: 50400"
		limits   = "api.example.com limits this client until 2000-01-01T14:00:00Z "
		banned   = "api.example.com has banned this client until 2000-01-01T00:01:00Z "
		long     = ": the request would wait longer than Options.MaxWait (2m0s)"
		noWait   = ": the Transport does not wait for the end of a ban"
	)
	for name, test := range map[string]struct{ answer, want, message string }{
		"a day's quota":               {day + envelope + `{"code":"rate_limit_exceeded","message":"Used up.","status":429}`, limits + "(429 rate_limit_exceeded)" + long, "Used up."},
		"problem details":             {day + "\nContent-Type: application/problem+json\n\n" + `{"code":"rate_limit_exceeded","detail":"Used up."}`, limits + "(429 rate_limit_exceeded)" + long, "Used up."},
		"an error of another service": {day + envelope + `{"code":7,"message":["x"]}`, limits + "(429)" + long, ""},
		"not JSON":                    {day + "\nContent-Type: text/html\n\n" + `{"code":"api_key_banned"}`, limits + "(429)" + long, ""},
		"a ban":                       {ban, banned + "(429 api_key_banned)" + noWait, "Banned."},
		"a network's ban":             {strings.Replace(ban, "api_key", "client", 1), banned + "(429 client_banned)" + noWait, "Banned."},
		"a ban as problem details":    {"429 Retry-After: 60\nContent-Type: application/problem+json\n\n" + `{"type":"https://iana.org/assignments/http-problem-types#abnormal-usage-detected"}`, banned + "(429)" + noWait, ""},
		"a ban in another form":       {"429 Retry-After: 60\nX-RateLimit-Banned: true" + envelope + `{"code":"resource_exhausted"}`, banned + "(429 resource_exhausted)" + noWait, ""},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newScript(test.answer)
			var body closing
			client := &http.Client{Transport: newTransport(t, roundTripper(func(r *http.Request) (*http.Response, error) {
				resp, err := s.RoundTrip(r)
				body.Reader, resp.Body = resp.Body, &body
				return resp, err
			}), transport.Options{})}
			for i := range 2 {
				_, err := client.Get(url)
				limit := limitOf(t, err)
				if got := limit.Error(); got != "transport: "+test.want || limit.Message != test.message || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("request %d:\n%q %q\nwant\n%q %q", i+1, got, limit.Message, test.want, test.message)
				}
				if wait := time.Until(limit.Until); wait <= 0 {
					t.Errorf("Until is %v ago, want a time to come", -wait)
				}
			}
			s.expect(t, "0s") // the second was not sent
			if body.closed != 1 {
				t.Errorf("the body was closed %d times, want once", body.closed)
			}
		})
	}
}

func TestStopsOnContext(t *testing.T) {
	stops := func(t *testing.T, rt *transport.Transport) {
		ctx, cancel := context.WithCancelCause(t.Context())
		reason := errors.New("shutting down")
		time.AfterFunc(5*time.Second, func() { cancel(reason) })
		begin := time.Now()
		r, _ := http.NewRequestWithContext(ctx, "GET", url, nil)
		if _, err := rt.RoundTrip(r); !errors.Is(err, reason) || time.Since(begin) != 5*time.Second {
			t.Errorf("the error is %v after %v, want the cause of the context after 5s", err, time.Since(begin))
		}
	}
	inBubble(t, "a pause", func(t *testing.T) {
		stops(t, newTransport(t, newScript("429 Retry-After: 17"), transport.Options{}))
	})
	inBubble(t, "a turn", func(t *testing.T) {
		rt := newTransport(t, newScript(), transport.Options{Plan: planOf(ratelimit.PerMinute(1)), Limiter: newEngine(t)})
		get(t, rt, url)
		stops(t, rt)
	})
}
