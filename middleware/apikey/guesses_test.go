package apikey_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

const (
	guesser = "192.0.2.1:1234"
	another = "192.0.2.2:1234"
)

var quiet = &apierror.Responder{Logger: slog.New(slog.DiscardHandler)}

// guarded is a service whose keys have any format.
type guarded struct {
	*memStore
	*apikey.Verifier[apikey.Principal]
	http.Handler
}

// newGuarded returns a service with a slow store.
func newGuarded(opts apikey.Options) guarded {
	g := guarded{memStore: newStore()}
	g.before = slow(50 * time.Millisecond)
	g.Verifier = must(apikey.NewVerifier(nil, g.memStore, opts))
	auth := must(bearer.New("pets", g.Verify, bearer.Options{Errors: quiet}))
	g.Handler = auth.Protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	return g
}

// allow puts a valid key into the store.
func (g guarded) allow(key string) string {
	g.put(key, record{Principal: ann})
	return key
}

// send returns the status and Retry-After of the response to a request with a key.
func (g guarded) send(addr, key string, edits ...func(*http.Request)) string {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = addr
	r.Header.Set("Authorization", "Bearer "+key)
	for _, edit := range edits {
		edit(r)
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return strings.TrimSpace(fmt.Sprint(w.Code, " ", w.Header().Get("Retry-After")))
}

// sendAll sends n requests of the guesser at once, with keys made of a format, and returns how many have each
// response.
func (g guarded) sendAll(n int, format string) map[string]int {
	var mu sync.Mutex
	var all sync.WaitGroup
	responses := map[string]int{}
	for i := range n {
		all.Go(func() {
			response := g.send(guesser, fmt.Sprintf(format, i))
			mu.Lock()
			defer mu.Unlock()
			responses[response]++
		})
	}
	all.Wait()
	return responses
}

// asked returns the look-ups since it was last called.
func (g guarded) asked() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer func() { g.calls = 0 }()
	return g.calls
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// What is counted, and for which network: how many of 100 guesses are looked up after 20 other
// requests, one after the other.
func TestWhatCountsAsAGuess(t *testing.T) {
	for name, c := range map[string]struct {
		key      string // of the other requests; # is their number
		response string
		from, to string // the networks of the other requests and of the guesses
		left     int
	}{
		"guesses":               {"guess#", "401", guesser, guesser, 40},
		"of another network":    {"guess#", "401", another, guesser, 60},
		"of a network in IPv6":  {"guess#", "401", "[2001:db8::1]:1", "[2001:db8::2]:1", 40},
		"of two in IPv6":        {"guess#", "401", "[2001:db8::1]:1", "[2001:db8:0:1::1]:1", 60},
		"without an address":    {"guess#", "401", "@", "", 40},
		"valid keys":            {"valid#", "200", guesser, guesser, 60},
		"a cached guess":        {"guess", "401", guesser, guesser, 59},
		"revoked keys":          {"revoked#", "401", guesser, guesser, 40},
		"an error of the store": {"errs#", "401", guesser, guesser, 40},
		"failures":              {"down#", "503 5", guesser, guesser, 60},
		"panics":                {"panic#", "503 5", guesser, guesser, 60},
		"a slow store":          {"slow#", "503 5", guesser, guesser, 60},
		"malformed":             {"a b", "401", guesser, guesser, 60},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := storeFunc(func(ctx context.Context, d apikey.Digest) (record, error) {
					for i := range 20 {
						switch number := fmt.Sprint(i); d {
						case apikey.DigestOf("valid" + number):
							return record{Principal: ann}, nil
						case apikey.DigestOf("revoked" + number):
							return record{Principal: ann, Revoked: time.Unix(0, 0)}, nil
						case apikey.DigestOf("errs" + number):
							return record{}, apikey.ErrRevoked
						case apikey.DigestOf("down" + number):
							return record{}, errors.New("connection refused")
						case apikey.DigestOf("panic" + number):
							panic("out of cheese")
						case apikey.DigestOf("slow" + number):
							<-ctx.Done()
							return record{}, ctx.Err()
						}
					}
					return record{}, apikey.ErrUnknown
				})
				v := must(apikey.NewVerifier(nil, store, apikey.Options{}))
				g := guarded{Handler: must(bearer.New("pets", v.Verify, bearer.Options{Errors: quiet})).Protect(http.NotFoundHandler())}
				if c.response == "200" {
					c.response = "404"
				}
				for i := range 20 {
					same(t, "response", g.send(c.from, strings.ReplaceAll(c.key, "#", fmt.Sprint(i))), c.response)
				}
				synctest.Wait() // a slow look-up ends after its request
				rest := "429 60"
				if name == "a slow store" {
					rest = "429 20" // after 20 times two seconds
				}
				got := map[string]int{}
				for i := range 100 {
					got[g.send(c.to, fmt.Sprint("another", i))]++
				}
				same(t, "guesses", got, map[string]int{"401": c.left, rest: 100 - c.left})
			})
		})
	}
}

// However many requests arrive at once, no more guesses are looked up than the plan allows, and
// no valid keys are refused.
func TestGuessesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(apikey.Options{})
		for i := range 300 {
			g.allow(fmt.Sprint("valid", i))
		}
		same(t, "new keys at once", g.sendAll(300, "valid%d"), map[string]int{"200": 300})
		g.asked()
		same(t, "guesses at once", g.sendAll(300, "guess%d"), map[string]int{"401": 60, "429 60": 240})
		same(t, "look-ups", g.asked(), 60)
		time.Sleep(2 * time.Second)
		same(t, "known keys that are looked up again", g.sendAll(300, "valid%d"), map[string]int{"200": 300})
		same(t, "a new key", g.send(guesser, g.allow("new")), "429 58")
		same(t, "a key from another network that was refused from this one", g.send(guesser, "x")+", "+g.send(another, "x"), "429 58, 401")
		time.Sleep(58 * time.Second)
		same(t, "a new key in the next minute", g.send(guesser, "new"), "200")

		g = newGuarded(apikey.Options{Guesses: ratelimit.MustPlan("mine", ratelimit.Penalty{}, ratelimit.PerHour(32))})
		same(t, "with a plan of the service", g.sendAll(300, "guess%d"), map[string]int{"401": 32, "429 3540": 268})
		g = newGuarded(apikey.Options{Guesses: ratelimit.UnlimitedPlan("any number")})
		same(t, "with an unlimited plan", g.sendAll(300, "guess%d"), map[string]int{"401": 300})
	})
}

// A client that polls with a key that is not valid any more cannot keep a new key out.
func TestPollWithARevokedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(apikey.Options{})
		g.before = nil
		revoked := record{Principal: ann, Revoked: time.Now()}
		for i := range 45 { // five times as often as there are look-ups
			for _, old := range []string{"old1", "old2", "old3", "old4", "old5"} {
				g.put(old, revoked)
				if got := g.send(guesser, old)[:3]; got != "401" && i < 12 || got != "429" && i > 12 {
					t.Errorf("after %d seconds: %s", i, got)
				}
			}
			time.Sleep(time.Second)
		}
		same(t, "look-ups", g.asked(), 5+60)
		same(t, "a new key", g.send(guesser, g.allow("new")), "200")
	})
}

// Requests that are given up cost as much as others. With a key that was valid, which costs
// nothing, they share a look-up, also one after the other.
func TestRequestsThatGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(apikey.Options{})
		g.send(guesser, g.allow("valid"))
		time.Sleep(time.Second)
		g.before = slow(time.Second)
		g.fail(context.Canceled)
		g.asked()
		for key, want := range map[string]int{"guess#": 60, "valid": 1} {
			for i := range 100 {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
				g.send(guesser, strings.ReplaceAll(key, "#", fmt.Sprint(i)), func(r *http.Request) { *r = *r.WithContext(ctx) })
				cancel()
			}
			same(t, "look-ups of "+key, g.asked(), want)
		}
		time.Sleep(time.Second)
	})
}

// A refusal needs nothing of the store, and does not wait until it has time.
func TestRefusalDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(apikey.Options{})
		g.sendAll(100, "guess%d")
		for i := range 50 {
			go g.send(another, fmt.Sprint("slow", i))
		}
		synctest.Wait()
		began := time.Now()
		same(t, "a guess", g.send(guesser, "guess"), "429 60")
		same(t, "it waited", time.Since(began), time.Duration(0))
		time.Sleep(time.Second)
	})
}

// Forget makes the Verifier ask again, and does not make a known client a new one.
func TestForgottenKeyStaysKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(apikey.Options{TTL: time.Hour})
		known := g.allow("known")
		same(t, "a key", g.send(guesser, known), "200")
		g.sendAll(100, "guess%d")
		g.asked()
		g.Forget(apikey.DigestOf(known))
		same(t, "the key when it was forgotten", g.send(guesser, known), "200")
		same(t, "look-ups", g.asked(), 1)
		g.Forget(apikey.DigestOf("guess0"))
		same(t, "a guess that was forgotten", g.send(guesser, "guess0"), "429 60")
	})
}

// Behind a proxy the networks are those of its clients, with the prefix of the Source.
func TestGuessesBehindAProxy(t *testing.T) {
	g := newGuarded(apikey.Options{Source: limit.Behind("192.0.2.0/24").WithIPv6Prefix(56).Source, Guesses: ratelimit.MustPlan("one", ratelimit.Penalty{}, ratelimit.PerDay(1))})
	g.before = nil
	got := ""
	for i, client := range []string{"198.51.100.1", "198.51.100.1", "198.51.100.2", "2001:db8::1", "2001:db8:0:ff::2", "2001:db8:0:100::2"} {
		got += g.send(guesser, fmt.Sprint("guess", i), func(r *http.Request) { r.Header.Set("X-Forwarded-For", client) })[:3] + " "
	}
	same(t, "responses", got, "401 429 401 401 429 401 ")
}

// The number of networks is bounded: if there is no place for another one, it is not counted.
func TestGuessesFromEverywhere(t *testing.T) {
	race.Skip(t)
	g := newGuarded(apikey.Options{Guesses: ratelimit.MustPlan("one", ratelimit.Penalty{}, ratelimit.PerDay(1))})
	g.before = nil
	for i := range 40_000 {
		if got := g.send(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255), fmt.Sprint("guess", i)); got != "401" {
			t.Fatalf("the first guess of network %d: %s, want 401", i, got)
		}
	}
}

// The refusal names what a translation needs, and is not logged.
func TestRefusedGuess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(apikey.Options{Guesses: ratelimit.MustPlan("one", ratelimit.Penalty{}, ratelimit.PerHour(1))})
		var reasons []error
		auth := must(bearer.New("pets", g.Verify, bearer.Options{Observe: func(_ *http.Request, o bearer.Outcome, reason error) {
			reasons = append(reasons, fmt.Errorf("%v: %w", o, reason))
		}}))
		g.Handler = auth.Protect(http.NotFoundHandler())
		g.send(guesser, "guess1")
		g.send(guesser, "guess2")
		var e *apierror.Error
		if !errors.As(reasons[1], &e) || !strings.HasPrefix(reasons[1].Error(), "refused: ") {
			t.Fatalf("reason %v, want a refusal", reasons[1])
		}
		same(t, "arguments", e.Args, map[string]any{"quota": "1/hour", "limit": int64(1), "cost": int64(1), "remaining": int64(0)})
		same(t, "Retry-After", e.RetryAfter, time.Hour-50*time.Millisecond)
		same(t, "the error", e.Error(), "429 rate_limit_exceeded: The API key was not checked because your network has sent too many keys that are not valid. Wait as long as Retry-After says.")
	})
}
