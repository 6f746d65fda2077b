//go:build unix

package main_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"syscall"
	"testing"
	"time"
)

// healthInterval is how often the balancer checks each replica.
const healthInterval = 25 * time.Millisecond

// A balancer sends each request to the next replica that is ready, as a load balancer or
// a Service of Kubernetes does. It asks /readyz of each replica again and again, stops
// sending requests to one that does not answer, and sends no request twice.
type balancer struct {
	url       string
	transport *http.Transport
	checks    sync.WaitGroup
	ctx       context.Context // of the checks

	mu       sync.Mutex
	backends []*backend
	next     int
}

// A backend is a replica that the balancer knows.
type backend struct {
	admin string
	proxy *httputil.ReverseProxy
	ready bool // guarded by the balancer's mutex
}

// startBalancer starts a balancer that keeps its connections to the replicas open. It
// ends with the test.
func startBalancer(t *testing.T) *balancer {
	b := &balancer{transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	var stop context.CancelFunc
	b.ctx, stop = context.WithCancel(context.Background())
	server := httptest.NewServer(b)
	b.url = server.URL
	t.Cleanup(func() {
		server.Close()
		stop()
		b.checks.Wait()
		b.transport.CloseIdleConnections()
	})
	return b
}

// add makes the balancer send requests to a replica, and waits until it does.
func (b *balancer) add(t *testing.T, p *process) {
	t.Helper()
	target, err := url.Parse(p.api)
	must(t, err)
	added := &backend{admin: p.admin}
	added.proxy = &httputil.ReverseProxy{
		Transport: b.transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
			r.SetXForwarded()
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			b.mu.Lock()
			added.ready = false // until it is asked again
			b.mu.Unlock()
			http.Error(w, fmt.Sprintf("%s: %v", noAnswer(p), err), http.StatusBadGateway)
		},
	}
	b.mu.Lock()
	b.backends = append(b.backends, added)
	b.mu.Unlock()
	b.checks.Go(func() { b.check(added) })
	eventually(t, "the balancer uses a replica", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return added.ready
	})
}

// noAnswer is what the balancer says of a replica that does not answer a request.
func noAnswer(p *process) string { return "the balancer got no answer from " + p.api }

// check finds out again and again whether a replica is ready, until it has ended.
func (b *balancer) check(one *backend) {
	for b.ctx.Err() == nil {
		a, err := ask(b.ctx, "GET", one.admin+"/readyz", "", "")
		b.mu.Lock()
		one.ready = err == nil && a.status == http.StatusOK
		b.mu.Unlock()
		if errors.Is(err, syscall.ECONNREFUSED) {
			return // the replica has ended
		}
		select {
		case <-time.After(healthInterval):
		case <-b.ctx.Done():
		}
	}
}

// ServeHTTP forwards a request.
func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	one := b.pick()
	if one == nil {
		http.Error(w, "the balancer knows no replica that is ready", http.StatusServiceUnavailable)
		return
	}
	one.proxy.ServeHTTP(w, r)
}

// pick returns the replica that is next, or nil if none is ready.
func (b *balancer) pick() *backend {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range b.backends {
		b.next++
		if one := b.backends[b.next%len(b.backends)]; one.ready {
			return one
		}
	}
	return nil
}
