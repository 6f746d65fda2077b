// Client is a service that allows 3 requests per second and 7 per day, and a client that
// keeps to these limits. Package transport waits for the next second, but not for the next
// day: the call fails with a LimitError.
//
//	go run ./examples/client
package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/transport"
)

func main() {
	api, err := newHandler()
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(api)
	defer server.Close()
	if err := call(os.Stdout, http.DefaultTransport, server.URL); err != nil {
		log.Fatal(err)
	}
}

// newHandler returns a service that allows its only user three requests a second and seven
// a day.
func newHandler() (http.Handler, error) {
	plan := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerSecond(3), ratelimit.PerDay(7))
	engine, err := memory.New(memory.Options{})
	if err != nil {
		return nil, err
	}
	limited, err := limit.New(engine, func(*http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: "user:ann", Plan: plan}, nil
	}, limit.Options{})
	if err != nil {
		return nil, err
	}
	return limited(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })), nil
}

// call sends requests to url until the limit of the day is reached, and prints what
// happens.
func call(out io.Writer, base http.RoundTripper, url string) error {
	limits, err := transport.New(transport.Options{
		Base:   base,
		OnWait: func(*http.Request, time.Duration) { fmt.Fprintln(out, "waiting for the next second") },
	})
	if err != nil {
		return err
	}
	client := &http.Client{Transport: limits}
	for {
		response, err := client.Get(url)
		var limit *transport.LimitError
		if errors.As(err, &limit) {
			_, err = fmt.Fprintln(out, "the limit of the day is reached; come back at", limit.Until.UTC().Format("15:04 MST"))
			return err
		}
		if err != nil {
			return err
		}
		response.Body.Close()
		fmt.Fprintln(out, response.Status)
	}
}
