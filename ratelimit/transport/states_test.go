package transport_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/transport"
)

// An answered is a response, and what it means for the next requests of its key.
type answered struct {
	sent, came, at  time.Time // at: it was read; came: its header was
	until           time.Time // the end of its pause or ban; the time at if there is none
	status          int
	refused, banned bool
}

// A keyHistory is what happened to the requests of one key. Its expect is the oracle.
type keyHistory struct {
	answers []answered
	probed  time.Time
}

// expect returns the answer that a request at the time now fails with; nil if it is sent.
func (k *keyHistory) expect(now time.Time) *answered {
	var holds answered
	for _, a := range k.answers {
		over := !holds.until.After(a.at)
		silent := a.status >= 500 && a.until.Equal(a.at)
		graver := a.banned && !holds.banned || a.banned == holds.banned && !a.until.Before(holds.until)
		if over || !silent && (a.sent.After(holds.at) || graver) {
			holds = a
		}
	}
	probe := holds.came.Add(time.Minute)
	if holds.refused {
		probe = holds.came.Add(15 * time.Minute)
	}
	if k.probed.After(holds.at) {
		probe = k.probed.Add(15 * time.Minute)
	}
	switch {
	case !now.Before(holds.until):
		return nil
	case now.Before(probe):
		return &holds
	}
	k.probed = now
	return nil
}

// randomServer gives random answers after random times, and notes them.
type randomServer struct {
	sync.Mutex
	*rand.Rand
	keys    map[string]*keyHistory // by Authorization
	arrived int
}

var randomAnswers = []string{
	"200", "200", "500", "200 X-RateLimit-Remaining: 0\nX-RateLimit-Reset: %d", "500 X-RateLimit-Remaining: 0\nX-RateLimit-Reset: %d",
	"429 Retry-After: %d", "503 Retry-After: %d", "429 Retry-After: %d\nX-RateLimit-Banned: true",
	"429 Retry-After: %d\nContent-Type: application/json\n\n" + `{"code":"client_banned"}`, "broken",
}

func (s *randomServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.Lock()
	s.arrived++
	seconds := (s.IntN(100) + 1) * []int{1, 200}[s.IntN(2)]
	answer := randomAnswers[s.IntN(len(randomAnswers))]
	delay, bodyDelay := s.some(5*time.Second, 2*time.Minute), s.some(5*time.Second, 2*time.Minute)
	s.Unlock()
	a := answered{sent: time.Now()}
	time.Sleep(delay)
	if answer == "broken" {
		return nil, errBroken
	}
	a.came, a.until = time.Now(), time.Now()
	if strings.Contains(answer, "%d") {
		answer = fmt.Sprintf(answer, seconds)
		a.until = a.came.Add(time.Duration(seconds) * time.Second)
	}
	resp := respond(r, answer)
	a.status, a.refused, a.banned = resp.StatusCode, strings.Contains(answer, "Retry"), strings.Contains(answer, "Banned")
	s.note(r, a)
	if strings.Contains(answer, "client_banned") {
		resp.Body = &lateBody{resp.Body, func() {
			time.Sleep(bodyDelay)
			a.banned = true
			s.note(r, a)
		}}
	}
	return resp, nil
}

func (s *randomServer) note(r *http.Request, a answered) {
	s.Lock()
	defer s.Unlock()
	a.at = time.Now()
	key := s.keys[r.Header.Get("Authorization")]
	key.answers = append(key.answers, a)
}

// A lateBody is a body that comes after the header.
type lateBody struct {
	io.ReadCloser
	wait func()
}

func (b *lateBody) Read(p []byte) (int, error) {
	if b.wait != nil {
		b.wait()
		b.wait = nil
	}
	return b.ReadCloser.Read(p)
}

// some returns a time up to one of most.
func (s *randomServer) some(most ...time.Duration) time.Duration {
	return time.Duration(s.Int64N(int64(most[s.IntN(len(most))]))) + 1
}

// Requests of a key are sent, or fail as the answers to others of the key say, in whatever
// order these come. A refusal is one as soon as its header is there, while its body comes.
func TestHistories(t *testing.T) {
	for seed := range uint64(race.Fewer(200)) {
		synctest.Test(t, func(t *testing.T) {
			s := &randomServer{Rand: rand.New(rand.NewPCG(seed, 0)), keys: map[string]*keyHistory{"ann": {}, "bob": {}}}
			opts := transport.Options{MaxWait: -1}
			if seed%2 == 0 {
				opts = withPlan(t, ratelimit.PerSecond(1000))
				opts.MaxWait = -1
			}
			rt := newTransport(t, s, opts)
			defer time.Sleep(time.Hour) // until all requests are answered
			for range 60 {
				s.Lock()
				name, pause := []string{"ann", "bob"}[s.IntN(2)], s.some(time.Second, time.Minute, 20*time.Minute)
				s.Unlock()
				time.Sleep(pause)
				s.Lock()
				want, arrived := s.keys[name].expect(time.Now()), s.arrived
				s.Unlock()
				var err error
				go func() {
					r, _ := http.NewRequestWithContext(t.Context(), "GET", url, nil)
					r.Header.Set("Authorization", name)
					_, err = rt.RoundTrip(r)
				}()
				synctest.Wait()
				var limit *transport.LimitError
				switch sent := s.arrived > arrived; {
				case sent && want == nil:
				case sent || want == nil || !errors.As(err, &limit):
					t.Fatalf("seed %d, %v: a request of %s was sent: %t, with error %v; want %+v", seed, time.Now(), name, sent, err, want)
				case limit.Banned != want.banned || !limit.Until.Equal(want.until) || limit.Status != want.status:
					t.Fatalf("seed %d, %v: a request of %s failed with %v; want %+v", seed, time.Now(), name, err, want)
				}
			}
		})
	}
}

// A client of ever new keys, such as hosts that refuse it once, does not fill its memory
// with states that are over; those in force stay.
func TestStatesThatAreOverAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429 Retry-After: 86400")
		rt := newTransport(t, s, transport.Options{MaxWait: -1})
		get(t, rt, url)
		most := 0
		for i := range 10_000 {
			time.Sleep(time.Second)
			s.answers = []string{"429 Retry-After: 10"}
			get(t, rt, fmt.Sprintf("http://%d.example.com/", i))
			most = max(most, transport.States(rt))
		}
		if most > 300 {
			t.Errorf("%d states were kept, of which 11 were in force", most)
		}
		s.answers = []string{"500"} // to a request that sees whether the first state holds
		get(t, rt, url)
		if got := get(t, rt, url); !strings.Contains(got, "limits this client") {
			t.Errorf("got %s, want a LimitError: the state that is in force was removed", got)
		}
	})
}

// A request that waits through a long pause is the one that is sent to see whether it
// still holds.
func TestProbesWhileItWaits(t *testing.T) {
	for answer, want := range map[string][]string{
		"200 X-RateLimit-Remaining: 0\nX-RateLimit-Reset: 18000": {"0s", "1m0s"},
		"429 Retry-After: 18000":                                 {"0s", "15m0s"},
	} {
		inBubble(t, answer, func(t *testing.T) {
			s := newScript(answer)
			rt := newTransport(t, s, transport.Options{MaxWait: 24 * time.Hour})
			for len(s.arrived) < 2 {
				if got := get(t, rt, url); got != "200" {
					t.Errorf("got %s, want 200", got)
				}
			}
			s.expect(t, want...)
		})
	}
}
