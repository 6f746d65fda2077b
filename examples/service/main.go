// Service is a whole service to copy: it writes texts for companies that pay by the token.
//
//	go run ./examples/service -redis redis://127.0.0.1:6379     # works without Redis too
//	curl -i -H "Authorization: Bearer $KEY" -d '{"about": "cats", "max_tokens": 50}' http://127.0.0.1:8081/v1/texts
//	curl -X POST -H "Authorization: Bearer $KEY" http://127.0.0.1:8081/v1/key     # a new one; the old one works for an hour
//	curl http://127.0.0.1:9091/metrics
//
// Keys and plans are in SQLite. A change of a plan takes effect within ten seconds, and a revoked
// key is refused within one. While Redis does not answer, each server limits by itself, and the
// log says so. This file starts and stops the service; api.go has the limits and the operations.
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

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/animalstore/gatehouse/middleware/telemetry"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

func main() {
	redisURL := flag.String("redis", "redis://127.0.0.1:6379", "`URL` of the Redis that shares limits")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	api, err1 := net.Listen("tcp", "127.0.0.1:8081")
	metrics, err2 := net.Listen("tcp", "127.0.0.1:9091") // which clients must not reach
	err := errors.Join(err1, err2)
	if err == nil {
		err = run(ctx, api, metrics, *redisURL, "texts.db", os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx ends, and then until running requests are answered.
func run(ctx context.Context, api, metrics net.Listener, redisURL, file string, out io.Writer) (err error) {
	limiter, closeLimiter, err := openLimiter(redisURL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeLimiter()) }()
	s, err := open(ctx, file)
	if err != nil {
		return err
	}
	defer s.db.Close()
	go s.keepPlans(ctx)
	if err := s.firstKey(ctx, out); err != nil {
		return err
	}

	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	if err != nil {
		return err
	}
	meters, err := telemetry.New(metric.NewMeterProvider(metric.WithReader(exporter)))
	if err != nil {
		return err
	}
	handler, err := newHandler(limiter, s, meters)
	if err := errors.Join(err, meters.ObserveEngine(limiter)); err != nil {
		return err
	}
	streams, endStreams := context.WithCancel(context.WithoutCancel(ctx))
	defer endStreams()
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return streams },
	}
	served := make(chan error, 2)
	go func() { served <- server.Serve(api) }()
	go func() { served <- http.Serve(metrics, promhttp.HandlerFor(registry, promhttp.HandlerOpts{})) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	time.AfterFunc(8*time.Second, endStreams) // so that those that still run settle what they have written
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(drain), metrics.Close())
}

// openLimiter returns the engine, and the function that closes it.
func openLimiter(redisURL string) (*failover.Limiter, func() error, error) {
	options, err := redis.ParseURL(redisURL)
	if err != nil {
		return nil, nil, fmt.Errorf("-redis must be a URL such as redis://127.0.0.1:6379: %w", err)
	}
	// As redislimit.New advises: an error immediately instead of pauses and more attempts.
	options.DialTimeout, options.ReadTimeout = 300*time.Millisecond, 300*time.Millisecond
	options.DialerRetries, options.MaxRetries = 1, -1
	client := redis.NewClient(options)
	shared, err1 := redislimit.New(client, redislimit.Options{Prefix: "texts"})
	local, err2 := memory.New(memory.Options{})
	limiter, err3 := failover.New(shared, failover.Options{Local: local})
	return limiter, func() error { return errors.Join(limiter.Close(), client.Close()) }, errors.Join(err1, err2, err3)
}
