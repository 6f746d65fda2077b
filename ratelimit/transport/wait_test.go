package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
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

func TestBacksOffWithoutATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(slices.Repeat([]string{"429"}, 20)...)
		got := get(t, newTransport(t, s, transport.Options{MaxWait: 5 * time.Minute}), url)
		s.expect(t, "0s", "1s", "3s", "7s", "15s", "31s", "1m3s", "2m3s", "3m3s", "4m3s")
		if !strings.HasSuffix(got, "Options.MaxWait (5m0s)") {
			t.Errorf("the caller gets %q, want a LimitError for MaxWait", got)
		}
	})
}

// An exhausted quota in a response pauses the next request, which is not refused then.
func TestWaitsBeforeItIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("200 X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 17")
		rt := newTransport(t, s, transport.Options{})
		get(t, rt, url)
		get(t, rt, url)
		s.expect(t, "0s", "17s")
	})
}

func TestIgnoresFieldsFromACache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("200 Age: 5\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 17")
		rt := newTransport(t, s, transport.Options{})
		get(t, rt, url)
		get(t, rt, url)
		s.expect(t, "0s", "0s")
	})
}

// All requests of a key share a pause, and others do not.
func TestSharesAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429 Retry-After: 17")
		rt := newTransport(t, s, transport.Options{})
		get := func(url, key string) {
			r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Authorization", "Bearer "+key)
			if got := send(rt, r); got != "200" {
				t.Errorf("%s as %s: %s, want 200", url, key, got)
			}
		}
		go get(url, "ann")
		synctest.Wait()
		time.Sleep(time.Second)
		for range 3 {
			go get(url, "ann")
		}
		get(url, "bob")
		get("http://other.example.com/", "ann")
		time.Sleep(time.Minute)
		s.expect(t, "0s", "1s", "1s", "17s", "17s", "17s", "17s")
	})
}

// A pause that grows while requests wait for its end holds for them too.
func TestAPauseGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429 Retry-After: 10", "429 Retry-After: 20")
		rt := newTransport(t, s, transport.Options{Jitter: time.Second})
		var done sync.WaitGroup
		for range 20 {
			done.Go(func() { get(t, rt, url) })
			synctest.Wait()
		}
		done.Wait()
		// One request came back first after ten seconds, and the 20 after 20 more.
		late := 0
		for _, at := range s.arrived[2:] {
			if d, err := time.ParseDuration(at); err != nil || d < 30*time.Second || d > 34*time.Second {
				t.Errorf("a request arrived at %v, want all but two from 30s to 34s", at)
			}
			late++
		}
		if late != 20 {
			t.Errorf("%d requests arrived after the second pause, want 20", late)
		}
	})
}

// By default up to a tenth of the wait is added.
func TestJitterByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last time.Duration
		for range 200 {
			rt, err := transport.New(transport.Options{
				Base:   newScript("429 Retry-After: 50"),
				OnWait: func(_ *http.Request, wait time.Duration) { last = max(last, wait) },
			})
			if err != nil {
				t.Fatal(err)
			}
			get(t, rt, url)
		}
		if last > 55*time.Second || last < 54500*time.Millisecond {
			t.Errorf("200 clients wait up to %v, want up to 55s", last)
		}
	})
}

func TestJitterSpreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var waits []time.Duration
		var done sync.WaitGroup
		for range 200 { // processes
			rt := newTransport(t, newScript("429 Retry-After: 50"), transport.Options{
				Jitter: 5 * time.Second,
				OnWait: func(_ *http.Request, wait time.Duration) {
					mu.Lock()
					defer mu.Unlock()
					waits = append(waits, wait)
				},
			})
			done.Go(func() { get(t, rt, url) })
		}
		done.Wait()
		first, last := slices.Min(waits), slices.Max(waits)
		// The chance of a failure is 2 * 0.9^200, less than one in 10^9.
		if first < 50*time.Second || first > 50500*time.Millisecond || last > 55*time.Second || last < 54500*time.Millisecond {
			t.Errorf("200 clients wait from %v to %v, want all over 50s to 55s", first, last)
		}
	})
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
		for _, sent := range []bool{true, false} {
			_, err := client.Get(url)
			limit := limitOf(t, err)
			if limit.Sent != sent || limit.Banned || limit.Status != 429 || limit.Code != "rate_limit_exceeded" ||
				limit.Message != "You have reached the limit." || limit.Host != "api.example.com" || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the error is %+v, want a limit with Sent %v", limit, sent)
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

// During a long pause one request in 15 minutes is sent; if it is served, the pause is
// over.
func TestProbesALongPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429 Retry-After: 86400", "429 Retry-After: 40000", "broken", "500")
		rt := newTransport(t, s, transport.Options{})
		for range 60 {
			for range 2 {
				go get(t, rt, url)
				synctest.Wait()
			}
			time.Sleep(time.Minute)
		}
		for range 2 {
			if got := get(t, rt, url); got != "200" {
				t.Errorf("after an hour: %s, want 200", got)
			}
		}
		s.expect(t, "0s", "15m0s", "30m0s", "45m0s", "1h0m0s", "1h0m0s")
	})
}

// The probe of a pause takes its turn of the plan like any other request.
func TestProbeWithAPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429 Retry-After: 86400", "429 Retry-After: 86400")
		opts := withPlan(t, ratelimit.PerHour(2))
		rt := newTransport(t, s, opts)
		for range 60 {
			get(t, rt, url)
			time.Sleep(time.Minute)
		}
		s.expect(t, "0s", "15m0s") // the later probes have no turn in this hour
		if got := get(t, rt, url); got != "200" {
			t.Errorf("the probe in the next hour gets %s, want 200", got)
		}
	})
}

// Pauses that are over take no memory for long.
func TestManyKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(slices.Repeat([]string{"429 Retry-After: 3600"}, 1000)...)
		rt := newTransport(t, s, transport.Options{})
		for i := range 1000 {
			get(t, rt, fmt.Sprintf("http://%d.example.com/", i))
			time.Sleep(time.Minute)
		}
		if n := transport.Pauses(rt); n > 200 {
			t.Errorf("%d pauses are kept, want at most about 120: 60 are in force", n)
		}
	})
}

// Pauses that are in force are kept, however many they are.
func TestManyKeysAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newTransport(t, newScript(slices.Repeat([]string{"429 Retry-After: 3600"}, 300)...), transport.Options{})
		for range 2 {
			for i := range 300 { // in the second round the server would serve them
				if got := get(t, rt, fmt.Sprintf("http://%d.example.com/", i)); !strings.Contains(got, "limits this client") {
					t.Fatalf("key %d: %s, want the LimitError of its pause", i, got)
				}
			}
		}
	})
}

func TestCapsItsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429 Retry-After: 30", "429 Retry-After: 30", "429 Retry-After: 30")
		got := get(t, newTransport(t, s, transport.Options{MaxWait: time.Minute}), url)
		if !strings.HasSuffix(got, "would wait longer than Options.MaxWait (1m0s)") {
			t.Errorf("the caller gets %q, want a LimitError", got)
		}
		s.expect(t, "0s", "30s", "1m0s")
	})
}

func TestNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429 Retry-After: 1")
		if got := get(t, newTransport(t, s, transport.Options{MaxWait: -1}), url); !strings.Contains(got, "Options.MaxWait (0s)") {
			t.Errorf("the caller gets %q, want a LimitError", got)
		}
		s.expect(t, "0s")
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

// Jitter never makes a request miss its deadline or exceed MaxWait.
func TestJitterKeepsToTheDeadline(t *testing.T) {
	for _, opts := range []transport.Options{{Jitter: time.Hour}, {Jitter: time.Hour, MaxWait: 18 * time.Second}} {
		inBubble(t, fmt.Sprint(opts.MaxWait), func(t *testing.T) {
			s := newScript("429 Retry-After: 17")
			client := &http.Client{Transport: newTransport(t, s, opts)}
			if opts.MaxWait == 0 {
				client.Timeout = 19 * time.Second
			}
			begin := time.Now()
			resp, err := client.Get(url)
			if err != nil || time.Since(begin) > 19*time.Second {
				t.Fatalf("%v after %v, want a response within 19s", err, time.Since(begin))
			}
			resp.Body.Close()
		})
	}
}

func TestJitterKeepsToMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 50 {
			begin := time.Now()
			s := newScript("429 Retry-After: 17", "429 Retry-After: 17")
			rt := newTransport(t, s, transport.Options{Jitter: time.Second, MaxWait: 35 * time.Second})
			if got := get(t, rt, url); got != "200" || time.Since(begin) > 35*time.Second {
				t.Fatalf("%s after %v, want 200 within 35s", got, time.Since(begin))
			}
		}
	})
}

// Clients that are refused again and again spread more and more, up to 30 seconds.
func TestJitterGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		longest := make([]time.Duration, 7) // extra time of the n-th wait, over all clients
		var done sync.WaitGroup
		for range 200 {
			n := 0
			rt := newTransport(t, newScript(slices.Repeat([]string{"429 Retry-After: 10"}, 7)...), transport.Options{
				Jitter: time.Second, MaxWait: time.Hour,
				OnWait: func(_ *http.Request, wait time.Duration) {
					mu.Lock()
					defer mu.Unlock()
					longest[n] = max(longest[n], wait-10*time.Second)
					n++
				},
			})
			done.Go(func() { get(t, rt, url) })
		}
		done.Wait()
		// The chance of a failure is 7 * 0.85^200, less than one in 10^12.
		for i, bound := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
			if bound *= time.Second; longest[i] > bound || longest[i] < bound*85/100 {
				t.Errorf("wait %d: the longest extra time of 200 is %v, want a little less than %v", i+1, longest[i], bound)
			}
		}
	})
}
