package logging

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// summed is a log whose lines the test reads.
type summed struct {
	*slog.Logger
	sums *sums
	b    bytes.Buffer
}

func newSummed() *summed {
	l := &summed{sums: new(sums)}
	l.Logger = slog.New(summing{jsonHandler(&l.b, nil), l.sums})
	return l
}

// request logs a request as the access log does.
func (l *summed) request(status int, attrs ...any) {
	l.Info("request", append([]any{"request_id", "0123456789abcdef", "method", "GET", "route", "/v1/pets", slog.Int("status", status), slog.Int64("bytes", 127)}, attrs...)...)
}

// take returns the lines so far, how many bytes they have, and for how many events they
// stand.
func (l *summed) take(t *testing.T) (lines []map[string]any, size, events int) {
	t.Helper()
	size = l.b.Len()
	for text := range bytes.Lines(l.b.Bytes()) {
		var line map[string]any
		if err := json.Unmarshal(text, &line); err != nil {
			t.Fatalf("the log has %q: %v", text, err)
		}
		lines = append(lines, line)
		count, ok := line["count"].(float64)
		if !ok {
			count = 1
		}
		events += int(count)
	}
	l.b.Reset()
	return lines, size, events
}

// However many requests of a network or key are denied, the log has one line about them at
// once, and one a second, which count each of them.
func TestDenialsOfOneClient(t *testing.T) {
	for _, tt := range []struct {
		name string
		log  func(l *summed)
	}{
		{"over the limit", func(l *summed) { l.request(429, "network", "192.0.2.1/32", "outcome", "banned") }},
		{"without a key", func(l *summed) { l.request(401, "network", "192.0.2.1/32") }},
		{"of a suspended plan", func(l *summed) { l.request(403, "network", "192.0.2.1/32") }},
		{"cancelled", func(l *summed) { l.request(499, "network", "192.0.2.1/32", "abandoned", true) }},
		{"of a key from many networks", func(l *summed) {
			l.request(429, "network", fmt.Sprint("192.0.2.", rand.N(250), "/32"), "key", "key_1")
		}},
		{"the cause", func(l *summed) { l.Info("request failed", slog.Int("status", 401), "error", "too long") }},
		{"of the admin listener", func(l *summed) {
			l.Warn("admin request", "remote", fmt.Sprint("192.0.2.1:", rand.N(60_000)), slog.Int("status", 200), "outcome", "wrong token")
		}},
		{"of the protocol", func(l *summed) {
			l.Warn("http server", "message", fmt.Sprint("http2: server: error reading preface from client ", rand.Int()))
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			const seconds, each = 5, 10_000
			l := newSummed()
			for range seconds {
				for range each {
					tt.log(l)
				}
				time.Sleep(sumPeriod)
				synctest.Wait()
			}
			lines, size, events := l.take(t)
			if len(lines) != 1+seconds || size > 400*len(lines) || events != seconds*each {
				t.Errorf("%s: %d lines of %d bytes count %d requests, want %d lines of at most 400 bytes and %d requests",
					tt.name, len(lines), size, events, 1+seconds, seconds*each)
			}
			if _, ok := lines[0]["count"]; ok {
				t.Errorf("%s: the first line is %v, want it without a count", tt.name, lines[0])
			}
			time.Sleep(sumPeriod)
			synctest.Wait()
			if l.sums.timer != nil || len(l.sums.open) > 0 {
				t.Errorf("%s: a sum is still open after a second without a denial", tt.name)
			}
			tt.log(l)
			if lines, _, _ := l.take(t); len(lines) != 1 {
				t.Errorf("%s: %d lines about a denial after that, want 1", tt.name, len(lines))
			}
			time.Sleep(2 * sumPeriod)
		})
	}
}

// A flood from many networks has a bounded number of lines too.
func TestDenialsOfManyClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const seconds, networks = 10, 5000
		l := newSummed()
		for second := range seconds {
			for range 2 {
				for i := range networks {
					l.request([]int{401, 429}[i%2], "network", fmt.Sprintf("10.%d.%d.%d/32", second, i/250, i%250))
				}
			}
			l.sums.mu.Lock()
			n := len(l.sums.open)
			l.sums.mu.Unlock()
			if n < maxSums || n > maxSums+2 {
				t.Errorf("%d sums are open, want %d, and at most one for each status", n, maxSums)
			}
			time.Sleep(sumPeriod)
			synctest.Wait()
		}
		l.sums.report() // as Close does
		lines, size, events := l.take(t)
		if most := seconds * (2*maxSums + 2); len(lines) > most || size > 400*most || events != seconds*networks*2 {
			t.Errorf("%d lines of %d bytes count %d requests, want at most %d lines and %d requests", len(lines), size, events, most, seconds*networks*2)
		}
		others := make(map[any]bool)
		for _, line := range lines {
			if _, ok := line["network"]; !ok {
				others[line["status"]] = true
			}
		}
		if len(others) != 2 || !others[401.0] || !others[429.0] {
			t.Errorf("lines without a network are about the statuses %v, want 401 and 429: they stand for the networks that have no sum of their own", others)
		}
		time.Sleep(2 * sumPeriod)
	})
}

// Every other line is written.
func TestOtherLinesAreNotSummed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSummed()
		const each = 3
		for range each {
			l.request(200, "network", "192.0.2.1/32")
			l.request(404, "network", "192.0.2.1/32")
			l.request(503, "network", "192.0.2.1/32")
			l.Error("request failed", slog.Int("status", 503), "error", "disk full")
			l.Error("handler panicked", slog.Int("status", 429))
			l.Info("serving", "network", "192.0.2.1/32")
			l.Warn("a changed setting takes effect after a restart", "setting", "listen")
			l.Info("admin request", "remote", "192.0.2.1:1", slog.Int("status", 200))
		}
		for _, text := range []string{"http: panic serving 192.0.2.1", "http: Accept error: too many open files"} {
			l.Warn("http server", "message", text)
		}
		l.request(429, "network", "192.0.2.1/32")
		l.request(429, "network", "192.0.2.2/32")
		l.request(401, "network", "192.0.2.1/32")
		l.request(429, "network", "192.0.2.1/32", "key", "key_1")
		if lines, _, _ := l.take(t); len(lines) != each*8+6 {
			t.Errorf("%d lines, want %d:\n%v", len(lines), each*8+6, lines)
		}
		time.Sleep(2 * sumPeriod)
	})
}

// A logger with attributes of its own keeps them in its sums, and Close writes the last ones.
func TestSumsAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSummed()
		more := slog.New(l.Handler().WithAttrs([]slog.Attr{slog.String("a", "b")}).WithGroup("g"))
		for range 3 {
			more.Info("request", slog.Int("status", 429))
		}
		l.sums.report()
		lines, _, _ := l.take(t)
		if len(lines) != 2 || lines[1]["a"] != "b" || fmt.Sprint(lines[1]["g"]) != "map[count:2 status:429]" {
			t.Errorf("the lines are %v, want a second one with its attributes and the count 2", lines)
		}
		time.Sleep(2 * sumPeriod)
	})
}
