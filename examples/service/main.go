// Service is a whole service with API keys and plans. With Redis it shares limits with
// other servers. Without Redis it keeps usage and bans in a file. It stops gracefully.
//
//	go run ./examples/service
//	go run ./examples/service -redis redis://127.0.0.1:6379
//
// It prints a curl line with an API key. Without a key, clients get 401 and are counted for
// their network. While Redis does not answer, each server limits by itself, and the log says
// so. What is in the file is not moved to Redis; docs/ENGINES.md says how a service does
// that.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/examples/internal/demo"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

var free = ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerDay(1000))

func main() {
	redisURL := flag.String("redis", "", "`URL` of the Redis that shares limits; empty: usage is kept in usage.json")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := net.Listen("tcp", "127.0.0.1:8081")
	if err == nil {
		err = run(ctx, l, *redisURL, "usage.json", free, os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run serves on l until ctx ends, and then until running requests are answered.
func run(ctx context.Context, l net.Listener, redisURL, file string, plan *ratelimit.Plan, out io.Writer) (err error) {
	limiter, closeLimiter, err := openLimiter(redisURL, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeLimiter()) }()

	handler, key, err := newHandler(limiter, plan)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "curl -i -H 'Authorization: Bearer %s' http://%s/hello\n", key, l.Addr())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return server.Shutdown(drain)
}

// openLimiter returns the engine, and the function that closes it.
func openLimiter(redisURL, file string) (ratelimit.Limiter, func() error, error) {
	if redisURL == "" {
		limiter, _, closeFile, err := memory.Open(file, memory.Options{})
		return limiter, closeFile, err
	}
	options, err := redis.ParseURL(redisURL)
	if err != nil {
		return nil, nil, fmt.Errorf("-redis must be a URL such as redis://127.0.0.1:6379: %w", err)
	}
	// As redislimit.New advises: an error immediately instead of pauses and more attempts.
	options.DialTimeout, options.ReadTimeout = 300*time.Millisecond, 300*time.Millisecond
	options.DialerRetries, options.MaxRetries = 1, -1
	client := redis.NewClient(options)
	shared, err := redislimit.New(client, redislimit.Options{Prefix: "example"})
	if err != nil {
		return nil, nil, err
	}
	local, err := memory.New(memory.Options{})
	if err != nil {
		return nil, nil, err
	}
	// While Redis does not answer, this process limits by itself with the same plans.
	limiter, err := failover.New(shared, failover.Options{Local: local})
	if err != nil {
		return nil, nil, err
	}
	return limiter, func() error { return errors.Join(limiter.Close(), client.Close()) }, nil
}

// newHandler returns one operation behind keys and limits, and a key of plan.
func newHandler(limiter ratelimit.Limiter, plan *ratelimit.Plan) (_ http.Handler, key string, err error) {
	errs := &apierror.Responder{RequestID: middleware.RequestIDFrom}
	auth, keys, err := demo.NewKeys(errs, map[string]*ratelimit.Plan{"demo": plan})
	if err != nil {
		return nil, "", err
	}
	guests := ratelimit.MustPlan("guests", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60))
	// Behind a reverse proxy: limit.Behind, and its Source in apikey.Options.
	guest := limit.Addresses{}.Identify(func(*http.Request) (string, *ratelimit.Plan, error) { return "", guests, nil })
	limited, err := limit.New(limiter, func(r *http.Request) (ratelimit.Caller, error) {
		if p, ok := bearer.FromContext[apikey.Principal](r.Context()); ok {
			return ratelimit.Caller{Subject: p.Subject, Plan: p.Plan, Kind: ratelimit.KindAPIKey}, nil
		}
		c, err := guest(r)
		c.Kind = ratelimit.KindNetwork
		return c, err
	}, limit.Options{Errors: errs})
	if err != nil {
		return nil, "", err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello", func(w http.ResponseWriter, r *http.Request) {
		p, _ := bearer.FromContext[apikey.Principal](r.Context())
		fmt.Fprintf(w, "hello, %s\n", p.Owner)
	})
	return middleware.Chain(errs.Mux(mux),
		middleware.RequestID, middleware.AccessLog(nil), errs.Recover, middleware.SecurityHeaders,
		auth.Identify, limited, auth.Require), keys["demo"], nil
}
