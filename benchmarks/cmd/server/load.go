package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
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

// run sends the requests. The time of a request begins when its turn comes, even if its
// connection still waits for the answer to an earlier one: a server that stalls also
// delays the requests that could not be sent meanwhile.
func (l load) run(ctx context.Context) (latencies, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begin := time.Now().Add(10 * time.Millisecond) // when all connections are open
	each := make([]latencies, connections)
	errs := make([]error, connections)
	var wg sync.WaitGroup
	for i := range connections {
		wg.Go(func() {
			if each[i], errs[i] = l.connection(ctx, begin, i); errs[i] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	all := slices.Concat(each...)
	slices.Sort(all)
	return all, nil
}

// connection sends every 64th request, from the i-th on.
func (l load) connection(ctx context.Context, begin time.Time, i int) (latencies, error) {
	c, err := l.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	out := l.request.bytes(l.address)
	in := bufio.NewReaderSize(c, 64<<10)
	took := make(latencies, 0, int(l.perS*l.duration.Seconds())/connections+1)
	for n := i; l.total == 0 || n < l.total; n += connections {
		due := time.Now()
		if l.perS > 0 {
			due = begin.Add(time.Duration(float64(n) / l.perS * float64(time.Second)))
		}
		if l.total == 0 && due.Sub(begin) >= l.duration {
			break
		}
		if wait := time.Until(due); wait > 0 {
			time.Sleep(wait)
		}
		if l.vary != nil {
			l.vary(out, n)
		}
		if _, err := c.Write(out); err != nil {
			return nil, err
		}
		status, err := skipAnswer(in, l.request.method)
		if err != nil {
			return nil, err
		}
		if status != l.request.status {
			return nil, fmt.Errorf("%s %s was answered with %d, want %d", l.request.method, l.request.path, status, l.request.status)
		}
		took = append(took, time.Since(due))
	}
	return took, nil
}

func (l load) dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", l.address)
}

// skipAnswer reads an answer and returns its status. It allocates nothing, so that what
// loads a server takes little of the machine from it.
func skipAnswer(in *bufio.Reader, method string) (status int, err error) {
	length := 0
	for first := true; ; first = false {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		switch line = bytes.TrimRight(line, "\r\n"); {
		case first:
			if len(line) < len("HTTP/1.1 200") {
				return 0, fmt.Errorf("the answer begins with %q", line)
			}
			if status, err = strconv.Atoi(string(line[9:12])); err != nil {
				return 0, fmt.Errorf("the answer begins with %q", line)
			}
		case len(line) == 0:
			if method == "HEAD" || status == 204 || status == 304 {
				length = 0
			}
			_, err := in.Discard(length)
			return status, err
		case bytes.HasPrefix(line, []byte("Content-Length: ")):
			if length, err = strconv.Atoi(string(line[len("Content-Length: "):])); err != nil {
				return 0, fmt.Errorf("the answer has %q", line)
			}
		case bytes.HasPrefix(line, []byte("Transfer-Encoding:")):
			return 0, errors.New("the answer has no Content-Length")
		}
	}
}
