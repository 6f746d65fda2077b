package main

import (
	"context"
	"fmt"
	"time"
)

// A sender sends the requests of a load when they are due. All times are since begin.
type sender struct {
	load
	poller      *poller
	connections [connections]connection
	begin       time.Time
	next        int // the first request whose turn has not come
	waiting     int // connections that wait for an answer
	took        latencies
	in          []byte
}

// A connection is one of a sender.
type connection struct {
	socket socket
	parser parser
	n      int           // the request that is sent, or the next one to send
	due    time.Duration // of the request that is sent
	sent   bool          // and not answered
	out    []byte
	unsent []byte // the end of out that the socket had no room for
}

// longestWait is how long a sender may take to notice that its context has ended.
const longestWait = 10 * time.Millisecond

func (s *sender) run(ctx context.Context) error {
	s.begin = time.Now()
	for {
		wait, err := s.sendDue()
		if err != nil {
			return err
		}
		if s.waiting == 0 && wait == forever {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		events, err := s.poller.wait(min(wait, longestWait))
		if err != nil {
			return err
		}
		for _, e := range events {
			if err := s.handle(&s.connections[e.connection()], e); err != nil {
				return fmt.Errorf("%s %s: %w", s.request.method, s.request.path, err)
			}
		}
	}
}

// forever is the time until the next request if there is none.
const forever = time.Duration(1<<63 - 1)

// due returns when a request is due, or forever if the load ends before it. Without a rate
// that is now, when its connection is free.
func (s *sender) due(n int, now time.Duration) time.Duration {
	due := now
	if s.perS > 0 {
		due = time.Duration(float64(n) / s.perS * float64(time.Second))
	}
	if s.total > 0 && n >= s.total || s.total == 0 && due >= s.duration {
		return forever
	}
	return due
}

// sendDue sends the requests that are due on connections that are free, and returns how
// long it is until the next one is due. A connection that is not free sends its next
// request when it has the answer.
func (s *sender) sendDue() (time.Duration, error) {
	for s.perS > 0 || s.next < connections {
		now := time.Since(s.begin) // sending takes its time
		due := s.due(s.next, now)
		if due == forever {
			break
		}
		if due > now {
			return due - now, nil
		}
		if c := &s.connections[s.next%connections]; c.n == s.next && !c.sent {
			if err := s.send(c, due); err != nil {
				return 0, err
			}
		}
		s.next++
	}
	return forever, nil
}

func (s *sender) send(c *connection, due time.Duration) error {
	if s.vary != nil {
		s.vary(c.out, c.n)
	}
	c.due, c.sent, c.unsent = due, true, c.out
	s.waiting++
	return c.write()
}

// write writes what the socket has room for.
func (c *connection) write() error {
	n, err := c.socket.write(c.unsent)
	c.unsent = c.unsent[n:]
	return err
}

// handle does what an event makes possible.
func (s *sender) handle(c *connection, e event) error {
	if e.readable() {
		if err := s.read(c, e.ended()); err != nil {
			return err
		}
	}
	if e.writable() && len(c.unsent) > 0 {
		return c.write()
	}
	return nil
}

// read reads what the server has sent, and after its end the error that says so.
func (s *sender) read(c *connection, ended bool) error {
	for {
		n, err := c.socket.read(s.in)
		if err != nil {
			return c.parser.interrupted(err)
		}
		if n > 0 {
			if err := s.receive(c, s.in[:n]); err != nil {
				return err
			}
		}
		if n == 0 || n < len(s.in) && !ended {
			return nil // another event says when there is more
		}
	}
}

// receive takes what the server has sent.
func (s *sender) receive(c *connection, piece []byte) error {
	if !c.sent {
		return fmt.Errorf("the server sent what is not an answer to any request:\n%s", begin(piece))
	}
	used, complete, err := c.parser.parse(piece)
	if err != nil {
		return err
	}
	if got := c.parser.status; got != 0 && got != s.request.status {
		return fmt.Errorf("answered with %d, want %d:\n%s", got, s.request.status, begin(piece))
	}
	if !complete {
		return nil
	}
	now := time.Since(s.begin)
	s.took = append(s.took, now-c.due)
	s.waiting--
	c.n, c.sent = c.n+connections, false
	if rest := piece[used:]; len(rest) > 0 {
		return s.receive(c, rest)
	}
	if due := s.due(c.n, now); due <= now {
		return s.send(c, due)
	}
	return nil
}
