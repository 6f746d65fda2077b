package limit_test

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

func TestByHeader(t *testing.T) {
	s := around(t, limit.ByHeader("x-api-key", perYear(2)))
	s.want(200, "192.0.2.1:1", "X-Api-Key", "a")
	s.want(200, "192.0.2.2:1", "X-Api-Key", "a") // wherever it is used
	s.want(429, "192.0.2.3:1", "X-Api-Key", "a")
	s.want(200, "192.0.2.1:1", "X-Api-Key", "b")
	s.want(429, "192.0.2.1:1", "X-Api-Key", "a", "X-Api-Key", "c") // the first line counts
	// Without the field, the network counts, apart from the values that it sent.
	s.want(200, "192.0.2.1:1")
	s.want(200, "192.0.2.1:1", "X-Api-Key", "")
	s.want(429, "192.0.2.1:1")
	// No value is a network, nor the values of one.
	s.want(200, "192.0.2.4:1", "X-Api-Key", "network:192.0.2.1/32")
	s.want(200, "192.0.2.4:1", "X-Api-Key", "a\nnetwork:192.0.2.1/32")
	s.want(200, "192.0.2.4:1", "X-Api-Key", "\n")
}

// A client that invents values is limited by its network, and a value by itself.
func TestInventedValues(t *testing.T) {
	s := around(t, limit.ByHeader("X-Api-Key", perYear(3)))
	s.want(200, "[2001:db8::1]:1", "X-Api-Key", "customer")
	admitted := 0
	for i := range 100 {
		if s.send("[2001:db8::1]:1", "X-Api-Key", strconv.Itoa(i)).Code == 200 {
			admitted++
		}
	}
	if admitted != 29 {
		t.Errorf("%d invented values were admitted, want 29: ten times the quota, less one", admitted)
	}
	// The customer has used one of its three, elsewhere: what its network was denied
	// is not charged to it.
	s.want(429, "[2001:db8::2]:1", "X-Api-Key", "customer")
	s.want(200, "192.0.2.1:1", "X-Api-Key", "customer")
	s.want(200, "192.0.2.1:1", "X-Api-Key", "customer")
	s.want(429, "192.0.2.1:1", "X-Api-Key", "customer")
	// What the value was denied is not charged to its network.
	for range 50 {
		s.want(429, "192.0.2.1:1", "X-Api-Key", "customer")
	}
	s.want(200, "192.0.2.1:1", "X-Api-Key", "other")
}

// The fields show the limit that matters most.
func TestHeaderFieldsOfTheNetwork(t *testing.T) {
	s := around(t, limit.ByHeader("X-Api-Key", perYear(1)))
	for i := range 10 {
		if got := s.send("192.0.2.1:1", "X-Api-Key", strconv.Itoa(i)).Header(); got.Get("X-RateLimit-Limit") != "1" {
			t.Errorf("value %d: limit %q, want that of the value", i, got.Get("X-RateLimit-Limit"))
		}
	}
	w := s.send("192.0.2.1:1", "X-Api-Key", "10")
	if w.Code != 429 || w.Header().Get("X-RateLimit-Limit") != "10" || w.Header().Get("X-RateLimit-Remaining") != "0" {
		t.Errorf("a further value: %d %v, want 429 with the limit of the network, 10", w.Code, w.Header())
	}
}

// A network has ten times the quota of the same month.
func TestHeaderPerMonth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // begins on 1 January 2000
		s := around(t, limit.ByHeader("X-Api-Key", limit.PerMonth(1).From(17)))
		for i := range 10 {
			s.want(200, "192.0.2.1:1", "X-Api-Key", strconv.Itoa(i))
		}
		w := s.send("192.0.2.1:1", "X-Api-Key", "10")
		if got, want := w.Header().Get("Retry-After"), strconv.Itoa(16*24*3600); w.Code != 429 || got != want {
			t.Errorf("%d, Retry-After %s, want 429 until the 17th, %s", w.Code, got, want)
		}
	})
}

// A network has ten times the rate of a smooth quota, and ten times the burst.
func TestHeaderSmooth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := around(t, limit.ByHeader("X-Api-Key", limit.PerMinute(6).Smooth(2)))
		for range 2 { // a bucket of 20 units, full after 20 s
			for i := range 20 {
				s.want(200, "192.0.2.1:1", "X-Api-Key", strconv.Itoa(i))
			}
			w := s.send("192.0.2.1:1", "X-Api-Key", "20")
			if got := w.Header().Get("Retry-After"); w.Code != 429 || got != "1" {
				t.Errorf("%d, Retry-After %s, want 429 until the next of 60 a minute", w.Code, got)
			}
			time.Sleep(20 * time.Second)
		}
	})
	around(t, limit.ByHeader("X-Api-Key", limit.PerSecond(1_000_000).Smooth(1_000_000))).want(200, "192.0.2.1:1", "X-Api-Key", "a")
}

// Units come back to a network ten times as fast as to one value, also at rates at which
// the bound on smooth quotas would be felt if it were lower.
func TestHeaderSmoothRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := around(t, limit.ByHeader("X-Api-Key", limit.PerMinute(6000).Smooth(100)))
		for range 3 {
			for i := range 1000 {
				s.want(200, "192.0.2.1:1", "X-Api-Key", "key "+strconv.Itoa(i%10))
			}
			s.want(429, "192.0.2.1:1", "X-Api-Key", "another key")
			time.Sleep(1001 * time.Millisecond) // the times of units are rounded up
		}
	})
}

func TestHeaderWithTheLargestQuota(t *testing.T) {
	s := around(t, limit.ByHeader("X-Api-Key", perYear(ratelimit.MaxLimit)))
	s.want(200, "192.0.2.1:1", "X-Api-Key", "a")
}

// Field names are tokens (RFC 9110 section 5.6.2).
func TestFieldNames(t *testing.T) {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	const token = letters + "0123456789!#$%&'*+-.^_`|~"
	for c := range 256 {
		name := "X" + string([]byte{byte(c)})
		want := c < 128 && strings.Contains(token, strings.ToLower(string(rune(c))))
		if got := accepts(name); got != want {
			t.Errorf("ByHeader accepts %q: %t, want %t", name, got, want)
		}
	}
}

func accepts(name string) (ok bool) {
	defer func() { ok = recover() == nil }()
	limit.ByHeader(name, limit.PerMinute(1))
	return
}
