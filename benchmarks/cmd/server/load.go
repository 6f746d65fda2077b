package main

import (
	"context"
	"runtime"
	"slices"
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
