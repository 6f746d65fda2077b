// Hello is a service with one rate limit: a minute's quota for each network.
//
//	go run ./examples/hello
//	for i in 1 2 3 4 5 6; do curl -i http://127.0.0.1:8081/; done
package main

import (
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/animalstore/gatehouse/middleware/clientip"
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
	plan, err := ratelimit.NewPlan("guests", ratelimit.DefaultPenalty(), ratelimit.PerMinute(5))
	if err != nil {
		return nil, err
	}
	engine, err := memory.New(memory.Options{})
	if err != nil {
		return nil, err
	}
	// The client has the address of the connection. Behind a proxy,
	// use clientip.FromXForwardedFor.
	source := clientip.FromRemoteAddr()
	limit, err := ratelimit.New(engine, func(r *http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: clientip.NetworkSubject(source.Addr(r)), Plan: plan, Kind: ratelimit.KindNetwork}, nil
	}, ratelimit.Options{})
	if err != nil {
		return nil, err
	}
	return limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "hello")
	})), nil
}
