// Tokens is a service in front of a language model, with limits that count tokens. It
// reserves what a question can cost at most, and settles what it did cost.
//
//	go run ./examples/tokens
//	curl -i -u ann: -d 'why the sky is blue' http://127.0.0.1:8081/ask
//
// A question is refused unless its largest cost fits, so that concurrent questions cannot
// exceed the limit together. X-RateLimit-Remaining is written before the answer, with all that
// is reserved. Settle gives the rest back or, if the cost was higher, charges the difference,
// even beyond the limit. Until then Retry-After counts what is reserved as used. It works after
// a disconnect too. In a stream, call it in a defer, or again and again while the answer is
// written: the last call counts. If it fails because Redis does not answer, it can be called
// again.
//
// If the body names the cost, such as max_tokens, parse it in a middleware outside of limit,
// which keeps it in the context. To limit requests beside tokens, add one more of Caller.Also,
// with a plan of requests and a Cost of 1: Settle does not change it.
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/examples/internal/demo"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A request may cost as much as a quota at most, so that the longest question and the
// longest answer together fit into a minute.
const (
	longestQuestion = 400 // bytes; a token has about four
	longestAnswer   = 200 // tokens; what other APIs call max_tokens
)

var free = ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(300), ratelimit.PerDay(5000))

func main() { demo.Serve(newHandler()) }

func newHandler() (http.Handler, error) {
	limiter, err := memory.New(memory.Options{})
	if err != nil {
		return nil, err
	}
	limited, err := limit.New(limiter, identify, limit.Options{Cost: estimate, Settle: true, ChargeIf: limit.NotServerError})
	if err != nil {
		return nil, err
	}
	errs := &apierror.Responder{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /ask", func(w http.ResponseWriter, r *http.Request) {
		question, err := io.ReadAll(r.Body)
		if err != nil { // it is too long, or the client has disconnected: what was reserved stays charged
			errs.Respond(w, r, err)
			return
		}
		tokens := answer(w, string(question))
		settlement := limit.FromContext(r.Context())
		if err := settlement.Settle(r.Context(), tokens); err != nil {
			log.Printf("%d tokens of %s: %v", tokens, settlement.Caller().Subject, err)
		}
		if left, err := limiter.Peek(r.Context(), settlement.Caller().Subject, free); err == nil {
			fmt.Fprintf(w, "%d tokens; %d left this minute, %d today\n", tokens, left.States[0].Remaining, left.States[1].Remaining)
		}
	})
	return middleware.Chain(mux, middleware.BodyLimit(longestQuestion, errs), limited), nil
}

// identify takes the word of the client for its name. A service would check a key first.
func identify(r *http.Request) (ratelimit.Caller, error) {
	name, _, ok := r.BasicAuth()
	if !ok {
		return ratelimit.Caller{}, apierror.New(http.StatusUnauthorized, "missing_user", "Send your name as the user of basic authentication.")
	}
	return ratelimit.Caller{Subject: "user:" + name, Plan: free}, nil
}

// estimate returns what a request can cost at most.
func estimate(r *http.Request) int64 {
	question := r.ContentLength
	if question < 0 { // unknown: BodyLimit ends it
		question = longestQuestion
	}
	return (question+3)/4 + longestAnswer
}

// answer stands for the model: it writes an answer, and returns the tokens of both.
func answer(w io.Writer, question string) int64 {
	text := "I do not know " + question + "."
	fmt.Fprintln(w, text)
	return int64(len(strings.Fields(question)) + len(strings.Fields(text)))
}
