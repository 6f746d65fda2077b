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

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

func main() {
	server := &http.Server{Addr: "127.0.0.1:8081", Handler: newHandler(), ReadHeaderTimeout: 5 * time.Second}
	log.Printf("listening on http://%s/", server.Addr)
	log.Fatal(server.ListenAndServe())
}

func newHandler() http.Handler {
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "hello")
	})
	return limit.ByIP(ratelimit.PerMinute(5))(hello) // behind a proxy: limit.Behind("10.0.0.0/8").ByIP
}
