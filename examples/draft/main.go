// Draft is a service that sends the header fields of the IETF draft, RateLimit and
// RateLimit-Policy, beside X-RateLimit.
//
//	go run ./examples/draft
package main

import (
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

func main() {
	handler, err := newHandler()
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "127.0.0.1:8081", Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	log.Printf("listening on http://%s/", server.Addr)
	log.Fatal(server.ListenAndServe())
}

func newHandler() (http.Handler, error) {
	plan := ratelimit.MustPlan("guests", ratelimit.Penalty{}, ratelimit.PerMinute(2), ratelimit.PerMonth(5000))
	engine, err := memory.New(memory.Options{})
	if err != nil {
		return nil, err
	}
	source := clientip.FromRemoteAddr()
	limited, err := limit.New(engine, func(r *http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: clientip.NetworkSubject(source.Addr(r)), Plan: plan}, nil
	}, limit.Options{
		Headers: limit.XRateLimit | limit.DraftRateLimit, // both, until all clients know the draft
	})
	if err != nil {
		return nil, err
	}
	return limited(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })), nil
}
