// Denials is a service that answers refused requests with its own status, body and
// language, and names the header fields as GitHub's API does.
//
//	go run ./examples/denials
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// The plan bans a client that sends a third request beyond the limit.
var plan = ratelimit.MustPlan("guests",
	ratelimit.Penalty{Strikes: 2, Ban: 5 * time.Minute, Growth: 2, Max: time.Hour, Forgive: time.Hour},
	ratelimit.PerMinute(2))

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
	engine, err := memory.New(memory.Options{})
	if err != nil {
		return nil, err
	}
	source := clientip.FromRemoteAddr()
	limited, err := limit.New(engine, func(r *http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: clientip.NetworkSubject(source.Addr(r)), Plan: plan}, nil
	}, limit.Options{
		Headers: limit.XRateLimit, // or limit.DraftRateLimit, both with |, or limit.NoHeaders
		Deny:    deny,
	})
	if err != nil {
		return nil, err
	}
	return limited(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })), nil
}

// problem is how all errors of this service look.
type problem struct {
	Reason string `json:"reason"`
	Text   string `json:"text"`
	Wait   int64  `json:"wait"` // seconds
}

// deny answers a request that is limited or banned. The header fields are already set.
func deny(w http.ResponseWriter, r *http.Request, _ ratelimit.Caller, d ratelimit.Decision) {
	p := problem{Reason: "slow_down", Text: "That was too fast.", Wait: d.RetryAfterSeconds()}
	if d.Outcome == ratelimit.Banned {
		p = problem{Reason: "blocked", Text: "You did not slow down.", Wait: p.Wait}
	}
	w.Header().Add("Vary", "Accept-Language")
	if strings.HasPrefix(r.Header.Get("Accept-Language"), "de") {
		w.Header().Set("Content-Language", "de")
		p.Text = map[string]string{"slow_down": "Das war zu schnell.", "blocked": "Das war zu oft zu schnell."}[p.Reason]
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusTooManyRequests)
	_ = json.NewEncoder(w).Encode(p) // an error means that the client has disconnected
}
