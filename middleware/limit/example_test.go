package limit_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// request sends a request with header lines given as name, value, and prints the response.
func request(h http.Handler, header ...string) {
	r := httptest.NewRequest("GET", "/", nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	fmt.Println(w.Code, "limit", w.Header().Get("X-RateLimit-Limit"), "remaining", w.Header().Get("X-RateLimit-Remaining"))
}

var api = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })

func ExampleByIP() {
	handler := limit.ByIP(ratelimit.PerDay(2))(api)
	request(handler)
	request(handler)
	request(handler)
	// Output:
	// 200 limit 2 remaining 1
	// 200 limit 2 remaining 0
	// 429 limit 2 remaining 0
}

// The proxies of the service have addresses in 10.0.0.0/8 and send X-Forwarded-For.
func ExampleBehind() {
	handler := limit.Behind("10.0.0.0/8").ByIP(ratelimit.PerDay(2))(api)
	request(handler)
	// Output: 200 limit 2 remaining 1
}

type userKey struct{}

// authenticate stands for the authentication of a service, which puts the user into the
// context.
func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _, _ := r.BasicAuth()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
	})
}

func userOf(r *http.Request) string { return r.Context().Value(userKey{}).(string) }

func ExampleByUser() {
	handler := authenticate(limit.ByUser(userOf, ratelimit.PerDay(1))(api))
	request(handler, "Authorization", "Basic YW5uOnNlY3JldA==") // ann
	request(handler, "Authorization", "Basic YW5uOnNlY3JldA==")
	request(handler) // no user: the network counts
	// Output:
	// 200 limit 1 remaining 0
	// 429 limit 1 remaining 0
	// 200 limit 1 remaining 0
}

func ExampleByPlan() {
	guests := ratelimit.MustPlan("guests", ratelimit.Penalty{}, ratelimit.PerDay(10)) // a network has many users: no bans
	free := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerDay(1000))
	pro := ratelimit.MustPlan("pro", ratelimit.DefaultPenalty(), ratelimit.PerMinute(600), ratelimit.PerDay(50_000))
	subscribers := map[string]bool{"bob": true}
	planOf := func(r *http.Request) (string, *ratelimit.Plan, error) {
		switch user := userOf(r); {
		case user == "":
			return "", guests, nil
		case subscribers[user]:
			return user, pro, nil
		default:
			return user, free, nil
		}
	}
	handler := authenticate(limit.ByPlan(planOf)(api))
	request(handler)
	request(handler, "Authorization", "Basic YW5uOnNlY3JldA==") // ann
	request(handler, "Authorization", "Basic Ym9iOnNlY3JldA==") // bob
	// Output:
	// 200 limit 10 remaining 9
	// 200 limit 60 remaining 59
	// 200 limit 600 remaining 599
}
