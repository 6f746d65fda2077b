package transport_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/transport"
)

// A request that is refused for a long time fails immediately, and the next ones are not
// sent.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("a request arrives")
		w.Header().Set("Retry-After", "3600")
		http.Error(w, "You have reached your limit.", http.StatusTooManyRequests)
	}))
	defer server.Close()

	limits, err := transport.New(transport.Options{})
	if err != nil {
		panic(err)
	}
	client := &http.Client{Transport: limits}
	for range 2 {
		_, err := client.Get(server.URL)
		var limit *transport.LimitError
		if errors.As(err, &limit) {
			fmt.Println(limit.Status, "retry after", time.Until(limit.Until).Round(time.Minute))
		}
	}
	// Output:
	// a request arrives
	// 429 retry after 1h0m0s
	// 429 retry after 1h0m0s
}

// The client stays within its plan before it sends anything. This one rather fails
// than wait.
func ExampleOptions_plan() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "hello")
	}))
	defer server.Close()

	limiter, err := memory.New(memory.Options{})
	if err != nil {
		panic(err)
	}
	limits, err := transport.New(transport.Options{
		Plan:    ratelimit.MustPlan("nightly", ratelimit.Penalty{}, ratelimit.PerDay(2)),
		Limiter: limiter,
		MaxWait: -1,
	})
	if err != nil {
		panic(err)
	}
	client := &http.Client{Transport: limits}
	for range 3 {
		response, err := client.Get(server.URL)
		if err != nil {
			fmt.Println("limited:", errors.As(err, new(*transport.LimitError)))
			continue
		}
		response.Body.Close()
		fmt.Println(response.Status)
	}
	// Output:
	// 200 OK
	// 200 OK
	// limited: true
}
