package logging

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
)

// sumPeriod is the time between two lines of one sum.
const sumPeriod = time.Second

// maxSums is how many networks and keys have a sum of their own at once. It bounds the
// lines about denials: to two a second for each.
const maxSums = 64

// A summing handler bounds the lines that clients can cause without being served. It
// passes on the first line about a denial, and then one line a second with the count of
// the lines that it stands for. All other lines pass.
type summing struct {
	slog.Handler
	sums *sums
}

// sums has the sums of a log. It has a timer only while there are denials. The zero value
// works.
type sums struct {
	mu    sync.Mutex
	open  map[denial]*sum
	timer *time.Timer // nil: open is empty
}

// A denial is what the lines of one sum have in common.
type denial struct {
	message string
	status  int64
	client  string // the network or the ID of the key; "": all that have no sum of their own
}

type sum struct {
	next  slog.Handler
	last  slog.Record
	count int64 // lines since the one that was passed on
}

// Handle implements [slog.Handler].
func (h summing) Handle(ctx context.Context, r slog.Record) error {
	if d, ok := denialOf(r); ok && h.sums.add(d, r, h.Handler) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// denialOf reports whether r is about a request that was denied or cancelled, or a warning
// of the admin listener or of net/http about a client.
func denialOf(r slog.Record) (d denial, ok bool) {
	d.message = r.Message
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "status":
			if a.Value.Kind() == slog.KindInt64 {
				d.status = a.Value.Int64()
			}
			return d.status >= http.StatusBadRequest || r.Level == slog.LevelWarn // otherwise r is not a denial
		case "network", "key": // the last one counts
			d.client = a.Value.String()
		case "remote":
			d.client = a.Value.String()
			d.client = d.client[:max(strings.LastIndexByte(d.client, ':'), 0)]
		case "message":
			d.client = a.Value.String()
			d.client = d.client[:min(len(d.client), 20)] // the text of net/http, before what the client sent
		}
		return true
	})
	switch d.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, 499:
		return d, r.Level < slog.LevelError
	}
	return d, r.Level == slog.LevelWarn && (r.Message == "admin request" || r.Message == "http server")
}

// add counts a line. It returns false for the first one of a sum, which is to be passed on.
func (s *sums) add(d denial, r slog.Record, next slog.Handler) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil {
		s.open, s.timer = map[denial]*sum{}, time.AfterFunc(sumPeriod, s.report)
	}
	e, full := s.open[d], len(s.open) >= maxSums
	if e == nil && full {
		d.client = ""
		r = slog.NewRecord(r.Time, r.Level, r.Message, 0)
		r.AddAttrs(slog.Int64("status", d.status))
		e = s.open[d]
	}
	if e == nil {
		e = new(sum)
		s.open[d] = e
		if !full {
			return false
		}
	}
	e.next, e.last, e.count = next, r.Clone(), e.count+1
	return true
}

// report passes on a line for each sum, and ends those that have none.
func (s *sums) report() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for d, e := range s.open {
		if e.count == 0 {
			delete(s.open, d)
			continue
		}
		e.last.AddAttrs(slog.Int64("count", e.count))
		_ = e.next.Handle(context.Background(), e.last) // never waits, and never fails
		e.count = 0
	}
	if len(s.open) == 0 {
		s.timer = nil
		return
	}
	s.timer.Reset(sumPeriod)
}

// WithAttrs implements [slog.Handler].
func (h summing) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

// WithGroup implements [slog.Handler].
func (h summing) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}

// Minutely lets one message in a minute through and counts the others, for libraries
// that write one for each attempt. The zero value works. It is safe for concurrent use.
type Minutely struct {
	mu      sync.Mutex
	passed  time.Time // time of the last message that was let through
	dropped int       // messages since then
}

// Pass reports whether a message may be written now, and how many were dropped since the
// last one.
func (m *Minutely) Pass() (dropped int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if now.Sub(m.passed) < time.Minute {
		m.dropped++
		return 0, false
	}
	dropped, m.passed, m.dropped = m.dropped, now, 0
	return dropped, true
}

// Reset lets the next message through.
func (m *Minutely) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.passed = time.Time{}
}
