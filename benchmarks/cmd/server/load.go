package main

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A load is a request that is sent on several connections at a fixed rate, whether the
// server keeps up with it or not.
type load struct {
	address string
	request request
	perS    float64 // zero: as fast as possible
	total   int     // how many requests; zero: as many as fit into the duration

	duration time.Duration

	// vary changes the request before it is sent for the n-th time, if it is not nil.
	// The length must stay the same.
	vary func(request []byte, n int)
}

// latencies are how long requests took, in ascending order.
type latencies []time.Duration

// at returns a quantile, such as 0.99.
func (l latencies) at(q float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	return l[min(int(q*float64(len(l))), len(l)-1)]
}

// run sends the requests, the n-th on connection n modulo 64. The time of a request begins
// when its turn comes, even if its connection still waits for the answer to an earlier one:
// a server that stalls also delays the requests that could not be sent meanwhile.
//
// One thread does all of it, and allocates nothing for a request, because the server under
// test shares the machine with it. It does not use the timers of Go, which are late by up
// to a millisecond and so turn requests that are evenly spaced into bursts.
func (l load) run(ctx context.Context) (latencies, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p, err := newPoller()
	if err != nil {
		return nil, err
	}
	defer p.close()
	s := &sender{load: l, poller: p, in: make([]byte, 64<<10)}
	s.took = make(latencies, 0, max(l.total, int(l.perS*l.duration.Seconds())+1))
	out := l.request.bytes(l.address)
	for i := range s.connections {
		c := connection{n: i, out: out, parser: parser{method: l.request.method}}
		if l.vary != nil {
			c.out = slices.Clone(out)
		}
		if c.socket, err = p.dial(ctx, l.address, i); err != nil {
			return nil, err
		}
		s.connections[i] = c
	}
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	slices.Sort(s.took)
	return s.took, nil
}

// A request is one that is sent many times.
type request struct {
	method string // "": GET
	path   string
	fields []field
	body   string
	status int // that it must be answered with
}

// A field is a header field.
type field struct{ name, value string }

// get returns a GET request with an API key, unless that is "".
func get(path, key string, fields ...field) request {
	if key != "" {
		fields = append([]field{bearer(key)}, fields...)
	}
	return request{method: "GET", path: path, fields: fields, status: 200}
}

func bearer(key string) field { return field{"Authorization", "Bearer " + key} }

// post returns a request that creates a pet.
func post(key string) request {
	return request{method: "POST", path: "/v1/pets", status: 201,
		fields: []field{bearer(key), {"Content-Type", "application/json"}}, body: `{"name":"Rex","categoryId":1}`}
}

// with returns the request with another field.
func (r request) with(name, value string) request {
	r.fields = append(slices.Clip(r.fields), field{name, value})
	return r
}

// answered returns the request that is answered with another status.
func (r request) answered(status int) request {
	r.status = status
	return r
}

// bytes returns the request as HTTP/1.1 to a host.
func (r request) bytes(host string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", r.method, r.path, host)
	for _, f := range r.fields {
		fmt.Fprintf(&b, "%s: %s\r\n", f.name, f.value)
	}
	if r.body != "" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(r.body))
	}
	b.WriteString("\r\n" + r.body)
	return b.Bytes()
}

// script returns the request as a script for wrk, which in the end prints what it counted
// as an object in JSON. A script without functions for requests and responses costs
// nothing while wrk runs.
func (r request) script() string {
	var b strings.Builder
	fmt.Fprintf(&b, "wrk.method = %q\n", r.method)
	for _, f := range r.fields {
		fmt.Fprintf(&b, "wrk.headers[%q] = %q\n", f.name, f.value)
	}
	if r.body != "" {
		fmt.Fprintf(&b, "wrk.body = %q\n", r.body)
	}
	b.WriteString(`done = function(sum, latency, requests)
  local e = sum.errors
  io.write(string.format('{"requests":%d,"microseconds":%d,"status":%d,"failed":%d}\n',
    sum.requests, sum.duration, e.status, e.connect + e.read + e.write + e.timeout))
end
`)
	return b.String()
}
