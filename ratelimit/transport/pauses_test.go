package transport_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/transport"
)

// slowBody is a body that does not come before release is closed.
type slowBody struct {
	io.Reader
	release <-chan struct{}
}

func (b slowBody) Read(p []byte) (int, error) {
	<-b.release
	return b.Reader.Read(p)
}

func (slowBody) Close() error { return nil }

// A denial is one as soon as its header is there: no request is sent while its body comes.
func TestPausesBeforeTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		denial := respond(nil, "429 Retry-After: 60\nContent-Type: application/json")
		denial.Body = slowBody{strings.NewReader(`{"code":"api_key_banned"}`), release}
		rt := newTransport(t, bare{denial}, transport.Options{MaxWait: -1})
		first := make(chan string, 1)
		go func() { first <- get(t, rt, url) }()
		synctest.Wait()
		if got := get(t, rt, url); !strings.Contains(got, "limits this client until 2000-01-01T00:01:00Z (429)") {
			t.Errorf("while the body comes, another request gets %s, want a LimitError", got)
		}
		close(release)
		const banned = "has banned this client until 2000-01-01T00:01:00Z (429 api_key_banned)"
		if got := <-first; !strings.Contains(got, banned) {
			t.Errorf("the request gets %s, want a LimitError that says it is banned", got)
		}
		if got := get(t, rt, url); !strings.Contains(got, banned) {
			t.Errorf("the next request gets %s, want a LimitError that says it is banned", got)
		}
	})
}

// delays answers each request after the time in its path, and then as script does.
type delays struct{ *script }

func (d delays) RoundTrip(r *http.Request) (*http.Response, error) {
	wait, err := time.ParseDuration(strings.TrimPrefix(r.URL.Path, "/"))
	if err != nil {
		return nil, err
	}
	time.Sleep(wait)
	return d.script.RoundTrip(r)
}

// Of two requests that were on their way together, the longer pause counts, whichever
// answer comes first, also if one of them is the first after an earlier pause.
func TestTheLongerPauseCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429 Retry-After: 5", "429 Retry-After: 60", "429 Retry-After: 10")
		rt := newTransport(t, delays{s}, transport.Options{MaxWait: -1})
		const host = "http://api.example.com/"
		get(t, rt, host+"0s")
		time.Sleep(6 * time.Second)
		go get(t, rt, host+"3s") // its pause of 10s is shorter
		synctest.Wait()
		go get(t, rt, host+"1s")
		time.Sleep(20 * time.Second)
		if got := get(t, rt, host+"0s"); !strings.Contains(got, "until 2000-01-01T00:01:07Z") {
			t.Errorf("20 seconds later: %s, want a LimitError until 60 seconds after the second answer", got)
		}
		s.expect(t, "0s", "7s", "9s")
	})
}

// During a long pause one request in 15 minutes is sent, under the plan as well. Its answer
// replaces the pause, except that a failure without the fields says nothing of it.
func TestProbes(t *testing.T) {
	for answer, want := range map[string][]string{
		"200": {"0s", "15m0s", "15m0s", "16m0s", "30m0s"},
		"200 X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 60": {"0s", "15m0s", "16m0s", "30m0s"},
		"429 Retry-After: 60":    {"0s", "15m0s", "16m0s", "30m0s"},
		"503 Retry-After: 60":    {"0s", "15m0s", "16m0s", "30m0s"},
		"429 Retry-After: 36000": {"0s", "15m0s", "30m0s"},
		"500":                    {"0s", "15m0s", "30m0s"},
		"500 X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 60": {"0s", "15m0s", "16m0s", "30m0s"},
		"broken": {"0s", "15m0s", "30m0s"},
	} {
		inBubble(t, answer, func(t *testing.T) {
			s := newScript("429 Retry-After: 18000", answer)
			rt := newTransport(t, s, transport.Options{MaxWait: -1, Plan: planOf(ratelimit.PerMinute(10)), Limiter: newEngine(t)})
			for _, at := range []time.Duration{0, 0, 15*time.Minute - 1, 15 * time.Minute, 15 * time.Minute, 16 * time.Minute, 30 * time.Minute} {
				time.Sleep(time.Until(s.begin.Add(at)))
				get(t, rt, url)
			}
			s.expect(t, want...)
		})
	}
}

// A success of a request that was on its way when the pause began does not end it.
func TestPauseOutlastsEarlierRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429 Retry-After: 60")
		rt := newTransport(t, delays{s}, transport.Options{MaxWait: -1})
		const host = "http://api.example.com/"
		go get(t, rt, host+"3s")
		synctest.Wait()
		get(t, rt, host+"1s")
		time.Sleep(5 * time.Second)
		get(t, rt, host+"0s")
		s.expect(t, "1s", "3s")
	})
}
