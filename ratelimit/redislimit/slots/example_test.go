package slots_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/middleware/inflight"
	"github.com/animalstore/gatehouse/ratelimit/redislimit/slots"
)

// Two processes allow one export of a user at once, together.
func Example() {
	server, err := miniredis.Run() // in place of a real one
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	process := func(export http.HandlerFunc) http.Handler {
		pool, err := slots.New(redis.NewClient(&redis.Options{Addr: server.Addr()}), "exports", 10*time.Second)
		if err != nil {
			log.Fatal(err)
		}
		identify := func(r *http.Request) (inflight.Caller, error) {
			user, _, _ := r.BasicAuth() // in a service: the user that authentication has found
			return inflight.Caller{Subject: "user:" + user}, nil
		}
		perUser, err := inflight.New(1, identify, inflight.Options{Shared: pool.Enter})
		if err != nil {
			log.Fatal(err)
		}
		return perUser.Middleware(export) // in a service, pool.Close follows Shutdown of the server
	}
	send := func(h http.Handler) int {
		r, w := httptest.NewRequest("GET", "/export", nil), httptest.NewRecorder()
		r.SetBasicAuth("ann", "secret")
		h.ServeHTTP(w, r)
		return w.Code
	}
	b := process(func(http.ResponseWriter, *http.Request) {})
	a := process(func(http.ResponseWriter, *http.Request) {
		fmt.Println("at another process meanwhile:", send(b))
	})
	fmt.Println("first:", send(a))
	// Output:
	// at another process meanwhile: 429
	// first: 200
}

// A stream interceptor of gRPC: ctx is the stream's, and serve stands for its handler. In a
// service the refusal is a status.Error with codes.ResourceExhausted.
func ExamplePool_Enter() {
	server, err := miniredis.Run() // in place of a real one
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	streams, err := slots.New(redis.NewClient(&redis.Options{Addr: server.Addr()}), "streams", 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	defer streams.Close()

	intercept := func(ctx context.Context, user string, serve func() error) error {
		leave, err := streams.Enter(ctx, "user:"+user, 1)
		if err != nil {
			log.Print("streams are counted in this process alone: ", err)
		}
		if leave == nil {
			return fmt.Errorf("only 1 of your streams may be open at a time")
		}
		defer leave()
		return serve()
	}
	err = intercept(context.Background(), "ann", func() error {
		fmt.Println("second:", intercept(context.Background(), "ann", nil))
		return nil
	})
	fmt.Println("first:", err)
	// Output:
	// second: only 1 of your streams may be open at a time
	// first: <nil>
}
