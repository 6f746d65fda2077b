package ratelimittest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// newService is a service as its program has it. It takes the engine as an argument, so
// that tests can pass one of their own.
func newService(limiter ratelimit.Limiter) http.Handler {
	free := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(2))
	byUser, err := limit.New(limiter, func(r *http.Request) (ratelimit.Caller, error) {
		user, _, _ := r.BasicAuth()
		return ratelimit.Caller{Subject: "user:" + user, Plan: free}, nil
	}, limit.Options{
		Cost: func(r *http.Request) int64 {
			if strings.HasPrefix(r.URL.Path, "/search") {
				return 2
			}
			return 1
		},
		ChargeIf: limit.NotServerError,
	})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	mux.HandleFunc("/search", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "nothing found") })
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	return byUser(mux)
}

// get returns the response to a request of ann.
func get(h http.Handler, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", path, nil)
	r.SetBasicAuth("ann", "secret")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestLimit(t *testing.T) {
	clock := ratelimittest.NewClock(time.Date(2026, time.March, 1, 12, 0, 43, 0, time.UTC))
	limiter, err := memory.New(memory.Options{Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	service := newService(limiter)

	w := get(service, "/hello")
	ratelimittest.CheckHeaders(t, w.Header(), ratelimittest.Fields{Limit: 2, Remaining: 1})
	get(service, "/hello")
	w = get(service, "/hello")
	ratelimittest.CheckHeaders(t, w.Header(), ratelimittest.Fields{Limit: 2, RetryAfter: 17 * time.Second})
	if w.Code != 429 {
		t.Errorf("third request in a minute: %d, want 429", w.Code)
	}

	clock.Advance(17 * time.Second) // the next minute
	w = get(service, "/hello")
	ratelimittest.CheckHeaders(t, w.Header(), ratelimittest.Fields{Limit: 2, Remaining: 1})
}

func TestLimitWithSynctest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // begins at midnight, UTC
		service := limit.ByIP(ratelimit.PerMinute(1))(http.NotFoundHandler()) // inside the bubble
		get(service, "/")
		w := get(service, "/")
		ratelimittest.CheckHeaders(t, w.Header(), ratelimittest.Fields{Limit: 1, RetryAfter: time.Minute})
		time.Sleep(time.Minute) // takes no time
		w = get(service, "/")
		ratelimittest.CheckHeaders(t, w.Header(), ratelimittest.Fields{Limit: 1})
	})
}

func TestWhatIsCharged(t *testing.T) {
	recorder := ratelimittest.NewRecorder(newEngine(t, ratelimittest.NewClock(noon)))
	get(newService(recorder), "/search?name=Rex")
	if call := recorder.Calls()[0]; call.Subject != "user:ann" || call.Plan.Name() != "free" || call.Cost != 2 {
		t.Errorf("a search charges %d units to %s under %v, want 2 to user:ann under free", call.Cost, call.Subject, call.Plan)
	}
}

func TestOutage(t *testing.T) {
	recorder := ratelimittest.NewRecorder(newEngine(t, ratelimittest.NewClock(noon)))
	service := newService(recorder)
	recorder.Fail()
	if w := get(service, "/hello"); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("the engine fails: %d %v, want 503 with Retry-After", w.Code, w.Header())
	}
	recorder.Resume()
	if w := get(service, "/hello"); w.Code != 200 {
		t.Errorf("the engine works again: %d, want 200", w.Code)
	}
}

func TestBan(t *testing.T) {
	recorder := ratelimittest.NewRecorder(newEngine(t, ratelimittest.NewClock(noon)))
	recorder.Deny(ratelimit.Banned)
	w := get(newService(recorder), "/hello")
	ratelimittest.CheckHeaders(t, w.Header(), ratelimittest.Fields{Limit: 2, RetryAfter: time.Minute})
	if !strings.Contains(w.Body.String(), `"client_banned"`) {
		t.Errorf("during a ban: %s, want client_banned", w.Body)
	}
}

func TestFailedRequestsAreNotCharged(t *testing.T) {
	service := newService(newEngine(t, ratelimittest.NewClock(noon)))
	get(service, "/broken")
	w := get(service, "/hello")
	ratelimittest.CheckHeaders(t, w.Header(), ratelimittest.Fields{Limit: 2, Remaining: 1})
}

// The code on the page is a part of the tests, so that it compiles and passes. That of
// gRPC is a part of those in examples/grpc, a module of its own.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/TESTING.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("service_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) == 0 {
		t.Error("docs/TESTING.md has no code")
	}
	for _, b := range blocks {
		if !strings.Contains(string(source), string(b[1])) && !strings.Contains(string(b[1]), "grpc.") {
			t.Errorf("docs/TESTING.md: this file does not have\n%s", b[1])
		}
	}
}
