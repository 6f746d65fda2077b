package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// beIdle opens connections that are idle after one request.
func beIdle(ctx context.Context, wg *sync.WaitGroup, s *petstore, n int) error {
	var idle []net.Conn
	closeAll := func() {
		for _, c := range idle {
			c.Close()
		}
	}
	request := get("/v1/pets", s.key)
	in := make([]byte, 64<<10)
	for range n {
		c, err := dial(ctx, s.api)
		if err != nil {
			closeAll()
			return err
		}
		idle = append(idle, c)
		if _, err := c.Write(request.bytes(s.api)); err != nil {
			closeAll()
			return err
		}
		status, err := skipAnswer(c, request.method, in)
		if err == nil && status != request.status {
			err = fmt.Errorf("its request was answered with %d, want %d", status, request.status)
		}
		if err != nil {
			closeAll()
			return fmt.Errorf("an idle connection: %w", err)
		}
	}
	wg.Go(func() {
		<-ctx.Done()
		closeAll()
	})
	return s.settle(ctx)
}

func dial(ctx context.Context, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

// slowness is the pause after each byte of slow clients.
const slowness = 50 * time.Millisecond

// readSlowly has clients ask for large pages and read them a byte at a time. The server
// cannot finish writing, because there are more answers than fit into the buffers of the
// connection. readSlowly returns when the server waits for the clients.
func readSlowly(ctx context.Context, wg *sync.WaitGroup, s *petstore) error {
	request := bytes.Repeat(get("/v1/pets?limit=100", s.key).bytes(s.api), 500)
	slowly(ctx, wg, s, func(c net.Conn) error {
		if err := c.(*net.TCPConn).SetReadBuffer(4096); err != nil {
			return err
		}
		go c.Write(request) // ends when the connection is closed
		var b [1]byte
		for {
			if _, err := c.Read(b[:]); err != nil {
				return err
			}
			if !pause(ctx, slowness) {
				return nil
			}
		}
	})
	return s.settle(ctx)
}

// writeSlowly has clients send requests a byte at a time.
func writeSlowly(ctx context.Context, wg *sync.WaitGroup, s *petstore) error {
	request := post(s.key).bytes(s.api)
	slowly(ctx, wg, s, func(c net.Conn) error {
		for i := range request {
			if _, err := c.Write(request[i : i+1]); err != nil {
				return err
			}
			if !pause(ctx, slowness) {
				return nil
			}
		}
		_, err := skipAnswer(c, "POST", make([]byte, 4096))
		return err
	})
	return nil
}

// slowly runs clients, each of which connects again when the server closes its connection.
func slowly(ctx context.Context, wg *sync.WaitGroup, s *petstore, client func(net.Conn) error) {
	for range connections {
		wg.Go(func() {
			for ctx.Err() == nil {
				c, err := dial(ctx, s.api)
				if err != nil {
					continue
				}
				stop := context.AfterFunc(ctx, func() { c.Close() })
				client(c) //nolint:errcheck // the server may close the connection of a slow client
				stop()
				c.Close()
			}
		})
	}
}

// connectAnew has clients open a connection for each request.
func connectAnew(ctx context.Context, wg *sync.WaitGroup, s *petstore) error {
	request := get("/v1/pets", s.key)
	every(ctx, wg, time.Second/500, func() error {
		c, err := dial(ctx, s.api)
		if err != nil {
			return err
		}
		defer c.Close()
		// Otherwise the port of each connection would be in use for another minute.
		if err := c.(*net.TCPConn).SetLinger(0); err != nil {
			return err
		}
		if _, err := c.Write(request.bytes(s.api)); err != nil {
			return err
		}
		_, err = skipAnswer(c, request.method, make([]byte, 4096))
		return err
	})
	return nil
}

// every calls a function again and again, until ctx ends or it fails. One call does not
// wait for another.
func every(ctx context.Context, wg *sync.WaitGroup, period time.Duration, do func() error) {
	wg.Go(func() {
		tick := time.NewTicker(period)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				wg.Go(func() { do() }) //nolint:errcheck // the load finds out if the server is gone
			case <-ctx.Done():
				return
			}
		}
	})
}

// pause waits for a time, or returns false if ctx ends.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
