// Inflight is a service with a slow operation. Each network may have two requests in
// progress, and one more waits for up to 1.5 s; the process may have a hundred.
//
//	go run ./examples/inflight
//	for i in 1 2 3 4 5; do curl -s http://127.0.0.1:8081/report & done; wait
package main

import (
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/inflight"
)

func main() {
	handler, err := newHandler()
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{
		Addr: "127.0.0.1:8081", Handler: handler,
		// A request counts while its body arrives and its response is written.
		ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
	}
	log.Printf("listening on http://%s/report", server.Addr)
	log.Fatal(server.ListenAndServe())
}

func newHandler() (http.Handler, error) {
	process, err := inflight.NewProcess(100, inflight.Options{})
	if err != nil {
		return nil, err
	}
	source := clientip.FromRemoteAddr() // behind a proxy: clientip.FromXForwardedFor
	perNetwork, err := inflight.New(2, func(r *http.Request) (inflight.Caller, error) {
		return inflight.Caller{Subject: clientip.NetworkSubject(source.Addr(r))}, nil
	}, inflight.Options{Queue: 1, Wait: 1500 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	report := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Second) // a query that takes long
		fmt.Fprintln(w, "report")
	})
	return middleware.Chain(report, process.Middleware, perNetwork.Middleware), nil
}
