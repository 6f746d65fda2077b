package httpserver

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Calls end at the same times and with the same results as those of the connection alone,
// however deadlines change before and during them.
func TestDeadlinesAreThoseOfTheConnection(t *testing.T) {
	for seed := range uint64(200) {
		want := callsOf(t, seed, func(c net.Conn) net.Conn { return c })
		got := callsOf(t, seed, func(c net.Conn) net.Conn { return newLimitedConn(c, new(limitListener), netip.Prefix{}) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d (-the connection alone +limited):\n%s", seed, diff)
		}
	}
}

// callsOf reads from a connection, writes to it and sets its deadlines at random times,
// and returns what became of the calls. No two things happen at the same time.
func callsOf(t *testing.T, seed uint64, wrap func(net.Conn) net.Conn) (calls map[string][]string) {
	calls = make(map[string][]string)
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(seed, 0))
		near, far := net.Pipe()
		c := wrap(near)
		begin := time.Now()
		var mu sync.Mutex
		record := func(what string, n int, err error) {
			mu.Lock()
			defer mu.Unlock()
			calls[what] = append(calls[what], fmt.Sprint(time.Since(begin), ": ", n, ", deadline ", errors.Is(err, os.ErrDeadlineExceeded)))
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			for p := make([]byte, 2); ; {
				n, err := c.Read(p)
				record("read", n, err)
				if errors.Is(err, io.EOF) {
					return
				}
				time.Sleep(307 * time.Microsecond)
			}
		})
		wg.Go(func() {
			for time.Since(begin) < 100*time.Millisecond {
				n, err := c.Write(make([]byte, 3))
				record("write", n, err)
				time.Sleep(701 * time.Microsecond)
			}
		})
		wg.Go(func() { // reads what is written, slowly
			for p := make([]byte, 2); ; time.Sleep(1907 * time.Microsecond) {
				if _, err := far.Read(p); err != nil {
					return
				}
			}
		})
		for i := range 100 {
			time.Sleep(time.Millisecond + time.Duration(i))
			at := time.Now().Add(time.Duration(random.IntN(10_000))*time.Microsecond + 113)
			switch random.IntN(4) {
			case 0:
				at = time.Time{}
			case 1:
				at = time.Unix(1, 0)
			}
			switch random.IntN(4) {
			case 0:
				_ = c.SetReadDeadline(at)
			case 1:
				_ = c.SetWriteDeadline(at)
			case 2:
				_ = c.SetDeadline(at)
			case 3:
				_ = far.SetWriteDeadline(time.Now().Add(50 * time.Microsecond))
				_, _ = far.Write(make([]byte, 5))
			}
		}
		time.Sleep(100 * time.Millisecond)
		_ = c.SetDeadline(time.Time{})
		far.Close()
		wg.Wait()
	})
	return calls
}

// A deadline that becomes earlier while the timer is moved to a later one counts.
func TestADeadlineThatMovesDuringPostpone(t *testing.T) {
	begin := time.Now()
	var wg sync.WaitGroup
	defer wg.Wait()
	moving := make(chan *deadline)
	defer close(moving)
	moved := make(chan struct{})
	wg.Go(func() {
		for d := range moving {
			d.postpone()
			moved <- struct{}{}
		}
	})
	for i := range 200_000 {
		d := new(deadline)
		d.init(begin, func(time.Time) error { return nil })
		d.running.Store(1)
		d.want.Store(int64(time.Hour))
		d.timer.Store(0) // it has ended the call too early
		moving <- d
		for range i % 100 { // hits the moment in which postpone has read the deadline
			d.running.Load()
		}
		_ = d.set(begin.Add(time.Minute))
		<-moved
		if want, timer := d.want.Load(), d.timer.Load(); timer > want {
			t.Fatalf("the timer ends the call after %v, want at the deadline, after %v", time.Duration(timer), time.Duration(want))
		}
	}
}

// A connection that is used without a pause moves the timer only now and then.
func TestBusyConnectionsRarelyMoveTheTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		counted := &countingConn{Conn: near}
		c := newLimitedConn(counted, new(limitListener), netip.Prefix{})
		defer c.Close()
		const requests = 10_000
		go func() {
			for range requests {
				time.Sleep(10 * time.Millisecond)
				_, _ = far.Write([]byte{0})
				_, _ = io.ReadFull(far, make([]byte, 1))
			}
		}()
		for range requests { // with the deadlines that net/http sets
			_ = c.SetReadDeadline(time.Now().Add(2 * time.Minute))
			_, err := c.Read(make([]byte, 1))
			must(t, err)
			_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
			_ = c.SetReadDeadline(time.Now().Add(15 * time.Second))
			_ = c.SetWriteDeadline(time.Now().Add(30 * time.Second))
			_ = c.SetReadDeadline(time.Time{})
			_ = c.SetReadDeadline(time.Unix(1, 0))
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("Read after the deadline: %v, want that it has passed", err)
			}
			_ = c.SetReadDeadline(time.Time{})
			if _, err := c.Write([]byte{0}); err != nil {
				t.Fatal(err)
			}
			_ = c.SetWriteDeadline(time.Time{})
		}
		if counted.moved > 10 {
			t.Errorf("in %d requests in 100 seconds the timers were moved %d times, want about once in 30 seconds for writes", requests, counted.moved)
		}
	})
}

type countingConn struct {
	net.Conn
	moved int
}

func (c *countingConn) SetReadDeadline(t time.Time) error {
	c.moved++
	return c.Conn.SetReadDeadline(t)
}

func (c *countingConn) SetWriteDeadline(t time.Time) error {
	c.moved++
	return c.Conn.SetWriteDeadline(t)
}
