package transport_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/transport"
)

const url = "http://api.example.com/pets"

// What the server answers to the first request, and when the second attempt is sent.
func TestWaitsAsTheServerSays(t *testing.T) {
	for name, test := range map[string]struct{ answer, second string }{
		"Retry-After":                       {"429 Retry-After: 17", "17s"},
		"Retry-After as a date":             {"429 Retry-After: Sat, 01 Jan 2000 00:00:17 GMT", "17s"},
		"Retry-After 0":                     {"429 Retry-After: 0", "1s"},
		"Retry-After before the reset":      {"429 Retry-After: 17\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 946684860", "17s"},
		"the reset in Unix time":            {"429 X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1000000017\nDate: Sun, 09 Sep 2001 01:46:40 GMT", "17s"},
		"the reset in seconds":              {"429 X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 17", "17s"},
		"RateLimit":                         {`429 RateLimit: "minute";r=0;t=17, "day";r=5;t=999`, "17s"},
		"GitHub, 403":                       {"403 X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 17", "17s"},
		"GitHub, 403 with Retry-After":      {"403 Retry-After: 17", "17s"},
		"a limit that the fields lack":      {"429 X-RateLimit-Remaining: 4000\nX-RateLimit-Reset: 946688400", "1m0s"},
		"a reset that is now":               {"429 X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 0", "1s"},
		"a reset that has passed":           {"429 X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 946684799", "1s"},
		"a reset that is now, and a day":    {`429 RateLimit: "minute";r=0;t=0, "day";r=5;t=999`, "1s"},
		"no reset":                          {`429 RateLimit: "minute";r=0`, "1s"},
		"nothing":                           {"429", "1s"},
		"a malformed Retry-After":           {"429 Retry-After: soon", "1s"},
		"unavailable":                       {"503 Retry-After: 17", "17s"},
		"a clock of the server that is off": {"429 Date: Fri, 31 Dec 1999 20:00:00 GMT\nRetry-After: Fri, 31 Dec 1999 20:00:17 GMT", "17s"},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newScript(test.answer, "200 \n\nserved")
			if got := get(t, newTransport(t, s, transport.Options{}), url); got != "200 served" {
				t.Errorf("the caller gets %q, want the second answer", got)
			}
			s.expect(t, "0s", test.second)
		})
	}
}

// Responses that are for the caller, whatever the next requests should do.
func TestPassesOn(t *testing.T) {
	for _, answer := range []string{
		"200 X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 17",
		"403 \n\nforbidden",
		"403 X-RateLimit-Limit: 0\nX-RateLimit-Remaining: 0\n\nsuspended",
		"403 X-RateLimit-Remaining: 5\nX-RateLimit-Reset: 17\n\nforbidden",
		"500 Retry-After: 17\n\nfailed",
		"503 \n\nunavailable",
		"301 Retry-After: 17",
		"401 X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 17\n\nwrong key",
	} {
		inBubble(t, answer, func(t *testing.T) {
			s := newScript(answer)
			_, body, _ := strings.Cut(answer, "\n\n")
			if got, want := get(t, newTransport(t, s, transport.Options{}), url), strings.TrimSpace(answer[:3]+" "+body); got != want {
				t.Errorf("the caller gets %q, want %q", got, want)
			}
			s.expect(t, "0s")
		})
	}
}

// All waits of a request together are no longer than MaxWait.
func TestMaxWait(t *testing.T) {
	for name, test := range map[string]struct {
		answer  string // to each request
		maxWait time.Duration
		arrived []string
		option  string
	}{
		"without a time":   {"429", 5 * time.Minute, []string{"0s", "1s", "3s", "7s", "15s", "31s", "1m3s", "2m3s", "3m3s", "4m3s"}, "5m0s"},
		"a time":           {"429 Retry-After: 30", 70 * time.Second, []string{"0s", "30s", "1m0s"}, "1m10s"},
		"it does not wait": {"429 Retry-After: 1", -1, []string{"0s"}, "0s"},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newScript(slices.Repeat([]string{test.answer}, 20)...)
			got := get(t, newTransport(t, s, transport.Options{MaxWait: test.maxWait}), url)
			if want := "would wait longer than Options.MaxWait (" + test.option + ")"; !strings.HasSuffix(got, want) {
				t.Errorf("the caller gets %q, want a LimitError that ends with %q", got, want)
			}
			s.expect(t, test.arrived...)
		})
	}
}

// An exhausted quota in a response pauses the next request, which is not refused then. A
// response from a cache says nothing.
func TestWaitsBeforeItIsRefused(t *testing.T) {
	for answer, second := range map[string]string{
		"200 X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 17":         "17s",
		"200 Age: 5\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 17": "0s",
	} {
		inBubble(t, answer, func(t *testing.T) {
			s := newScript(answer)
			rt := newTransport(t, s, transport.Options{})
			get(t, rt, url)
			get(t, rt, url)
			s.expect(t, "0s", second)
		})
	}
}

// A request waits no longer than MaxWait, and only if that leaves a tenth of the wait to
// spread clients over.
func TestMaxWaitLeavesRoomForJitter(t *testing.T) {
	for name, c := range map[string]struct {
		answer  string
		longest time.Duration // 0: the request fails
	}{
		"nothing left":           {"429 Retry-After: 60", 0},
		"less than a tenth left": {"429 Retry-After: 55", 0},
		"a tenth left":           {"429 Retry-After: 54", 59400 * time.Millisecond},
	} {
		inBubble(t, name, func(t *testing.T) {
			var waits []time.Duration
			for range 300 {
				rt, err := transport.New(transport.Options{
					Base: newScript(c.answer), MaxWait: time.Minute,
					OnWait: func(_ *http.Request, wait time.Duration) { waits = append(waits, wait) },
				})
				must(t, err)
				get(t, rt, url)
			}
			if len(waits) == 0 {
				waits = []time.Duration{0}
			}
			// The chance of a failure is 0.9^300, less than one in 10^13.
			if last := slices.Max(waits); last > c.longest || last < c.longest-600*time.Millisecond {
				t.Errorf("300 clients wait up to %v, want %v", last, c.longest)
			}
		})
	}
}

func TestFailsFast(t *testing.T) {
	const ban = "429 Retry-After: 60\nContent-Type: application/json\n\n" + `{"code":"api_key_banned","message":"Banned.","status":429}`
	for name, test := range map[string]struct{ answer, want string }{
		"a day's quota": {"429 Retry-After: 50400\nContent-Type: application/json\n\n" + `{"code":"rate_limit_exceeded","message":"You have reached the limit.","status":429}`,
			"api.example.com limits this client until 2000-01-01T14:00:00Z (429 rate_limit_exceeded): the request would wait longer than Options.MaxWait (2m0s)"},
		"a ban":           {ban, "api.example.com has banned this client until 2000-01-01T00:01:00Z (429 api_key_banned): the Transport does not wait for the end of a ban"},
		"a network's ban": {strings.Replace(ban, "api_key", "client", 1), "api.example.com has banned this client until 2000-01-01T00:01:00Z (429 client_banned): the Transport does not wait for the end of a ban"},
		"a ban as problem details": {"429 Retry-After: 60\nContent-Type: application/problem+json\n\n" + `{"type":"https://iana.org/assignments/http-problem-types#abnormal-usage-detected"}`,
			"api.example.com has banned this client until 2000-01-01T00:01:00Z (429): the Transport does not wait for the end of a ban"},
		"a ban by gatehouseconnect": {"429 Retry-After: 60\nContent-Type: application/json\n\n" +
			`{"code":"resource_exhausted","message":"Banned.","details":[{"type":"google.rpc.ErrorInfo","value":"Cg1","debug":{"reason":"CLIENT_BANNED","domain":"github.com/animalstore/gatehouse"}},{"type":"google.rpc.RetryInfo","value":"CgIIPA","debug":{"retryDelay":"60s"}}]}`,
			"api.example.com has banned this client until 2000-01-01T00:01:00Z (429 client_banned): the Transport does not wait for the end of a ban"},
		"another service's Connect error": {"429 Retry-After: 50400\nContent-Type: application/json\n\n" +
			`{"code":"resource_exhausted","details":[{"type":"google.rpc.ErrorInfo","debug":{"reason":"CLIENT_BANNED","domain":"example.com"}},{"debug":7},"x"]}`,
			"api.example.com limits this client until 2000-01-01T14:00:00Z (429 resource_exhausted): the request would wait longer than Options.MaxWait (2m0s)"},
		"an error of another service": {"429 Retry-After: 50400\nContent-Type: application/json\n\n" + `{"code":7,"message":["x"]}`,
			"api.example.com limits this client until 2000-01-01T14:00:00Z (429): the request would wait longer than Options.MaxWait (2m0s)"},
		"not JSON": {"429 Retry-After: 50400\nContent-Type: text/html\n\n" + `{"code":"api_key_banned"}`,
			"api.example.com limits this client until 2000-01-01T14:00:00Z (429): the request would wait longer than Options.MaxWait (2m0s)"},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := newScript(test.answer)
			rt := newTransport(t, s, transport.Options{})
			for i := range 2 {
				if got := get(t, rt, url); got != test.want {
					t.Errorf("request %d:\n%q\nwant\n%q", i+1, got, test.want)
				}
			}
			s.expect(t, "0s") // the second was not sent
		})
	}
}

func TestLimitError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429 Retry-After: 3600\nContent-Type: application/problem+json\n\n" + `{"code":"rate_limit_exceeded","detail":"You have reached the limit.","status":429}`)
		client := &http.Client{Transport: newTransport(t, s, transport.Options{})}
		for range 2 { // the second is not sent
			_, err := client.Get(url)
			limit := limitOf(t, err)
			if limit.Banned || limit.Status != 429 || limit.Code != "rate_limit_exceeded" ||
				limit.Message != "You have reached the limit." || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the error is %+v, want that of the answer", limit)
			}
			if limit.RetryAfter() != time.Hour {
				t.Errorf("RetryAfter is %v, want 1h", limit.RetryAfter())
			}
		}
		_, err := client.Get(url)
		limit := limitOf(t, err)
		time.Sleep(2 * time.Hour)
		if limit.RetryAfter() != 0 {
			t.Errorf("RetryAfter after its end is %v, want 0", limit.RetryAfter())
		}
	})
}

// The caller learns what the envelope says, and the body of each refusal is closed, so
// that no connection stays open.
func TestRefusalIsReadAndClosed(t *testing.T) {
	inBubble(t, "bubble", func(t *testing.T) {
		script := newScript("429 Retry-After: 1",
			"429 Retry-After: 3600\nContent-Type: application/json\n\n"+`{"code":"rate_limit_exceeded","message":"You have reached the limit.","status":429}`)
		var body closing
		base := roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := script.RoundTrip(r)
			body.Reader, resp.Body = resp.Body, &body
			return resp, err
		})
		r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
		must(t, err)
		_, err = newTransport(t, base, transport.Options{}).RoundTrip(r)
		if limit := limitOf(t, err); limit.Message != "You have reached the limit." || limit.Code != "rate_limit_exceeded" {
			t.Errorf("the error is %+v, want the code and the message of the envelope", limit)
		}
		if body.closed != 2 {
			t.Errorf("%d bodies of 2 refusals were closed", body.closed)
		}
	})
}

func TestStopsOnContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429 Retry-After: 17")
		rt := newTransport(t, s, transport.Options{})
		ctx, cancel := context.WithCancelCause(t.Context())
		reason := errors.New("shutting down")
		time.AfterFunc(5*time.Second, func() { cancel(reason) })
		begin := time.Now()
		r, _ := http.NewRequestWithContext(ctx, "GET", url, nil)
		if _, err := rt.RoundTrip(r); !errors.Is(err, reason) || time.Since(begin) != 5*time.Second {
			t.Errorf("the error is %v after %v, want the cause of the context after 5s", err, time.Since(begin))
		}
	})
}

func TestFailsAtOnceIfTheDeadlineIsTooEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429 Retry-After: 17")
		client := &http.Client{Transport: newTransport(t, s, transport.Options{}), Timeout: 17 * time.Second}
		begin := time.Now()
		_, err := client.Get(url)
		if limitOf(t, err); !errors.Is(err, context.DeadlineExceeded) || !time.Now().Equal(begin) {
			t.Errorf("the error is %v after %v, want DeadlineExceeded at once", err, time.Since(begin))
		}
	})
}

// Clients that are refused again and again spread more and more, up to 30 seconds. The
// random time makes no request exceed MaxWait.
func TestJitterGrows(t *testing.T) {
	for maxWait, bounds := range map[time.Duration][]time.Duration{
		time.Hour: {1, 2, 4, 8, 16, 30, 30}, 22 * time.Second: {1, 1},
	} {
		inBubble(t, maxWait.String(), func(t *testing.T) {
			var mu sync.Mutex
			longest := make([]time.Duration, len(bounds)) // extra time of the n-th wait, over all clients
			var done sync.WaitGroup
			for range 200 {
				n, total := 0, time.Duration(0)
				rt, err := transport.New(transport.Options{
					Base: newScript(slices.Repeat([]string{"429 Retry-After: 10"}, len(bounds))...), MaxWait: maxWait,
					OnWait: func(_ *http.Request, wait time.Duration) {
						mu.Lock()
						defer mu.Unlock()
						longest[n] = max(longest[n], wait-10*time.Second)
						if n, total = n+1, total+wait; total > maxWait {
							t.Errorf("a request waits for %v", total)
						}
					},
				})
				must(t, err)
				done.Go(func() { get(t, rt, url) })
			}
			done.Wait()
			// The chance of a failure is 7 * 0.85^200, less than one in 10^12.
			for i, bound := range bounds {
				if bound *= time.Second; longest[i] > 2*bound || maxWait == time.Hour && (longest[i] > bound || longest[i] < bound*85/100) {
					t.Errorf("wait %d: the longest extra time of 200 is %v, want a little less than %v", i+1, longest[i], bound)
				}
			}
		})
	}
}
