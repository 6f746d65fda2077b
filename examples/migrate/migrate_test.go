// Package migrate tests that services with the limits of other libraries, and the same
// services with those of Gatehouse, admit the same requests. The page docs/MIGRATING.md
// shows how the programs differ.
package migrate

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	httprateafter "github.com/animalstore/gatehouse/examples/migrate/httprate/after"
	httpratebefore "github.com/animalstore/gatehouse/examples/migrate/httprate/before"
	tollboothafter "github.com/animalstore/gatehouse/examples/migrate/tollbooth/after"
	tollboothbefore "github.com/animalstore/gatehouse/examples/migrate/tollbooth/before"
	ululeafter "github.com/animalstore/gatehouse/examples/migrate/ulule/after"
	ululebefore "github.com/animalstore/gatehouse/examples/migrate/ulule/before"
)

// A burst is requests at one instant.
type burst struct {
	wait     time.Duration // since the burst before
	client   string        // both the user and the address behind the proxy
	target   string
	requests int
	want     int // how many are admitted
}

const ann, bob = "198.51.100.1", "198.51.100.2"

// migrations are the folders here.
var migrations = []struct {
	from          string
	before, after func() http.Handler
	outside       bool // before starts a goroutine that does not end, which a bubble refuses; it sleeps for an hour
	// The Retry-After of the last 429.
	retryBefore, retryAfter string
	bursts                  []burst
}{
	{"ulule", ululebefore.New, ululeafter.New, true, "", "58", []burst{
		{0, ann, "GET /pets", 70, 60},
		{0, bob, "GET /pets", 1, 1},
		{30 * time.Second, ann, "GET /pets", 5, 0},
		{31 * time.Second, ann, "GET /pets", 70, 40}, // of the day
		{61 * time.Second, ann, "GET /pets", 5, 0},
		{24 * time.Hour, ann, "GET /pets", 70, 60},
	}},
	{"httprate", httpratebefore.New, httprateafter.New, false, "60", "30", []burst{
		{0, ann, "POST /login", 7, 5},
		{0, ann, "GET /pets", 95, 93}, // the two that the inner limit refused count in the outer one
		{0, bob, "POST /login", 1, 1},
		{30 * time.Second, ann, "GET /pets", 5, 0},
		{2 * time.Minute, ann, "GET /pets", 110, 100},
	}},
	{"tollbooth", tollboothbefore.New, tollboothafter.New, false, "", "1", []burst{
		{0, ann, "GET /pets", 30, 20},
		{501 * time.Millisecond, ann, "GET /pets", 30, 5},
		{2 * time.Second, ann, "GET /pets", 30, 20},
		{101 * time.Millisecond, ann, "GET /pets", 30, 1},
	}},
}

// send sends the requests of a burst. It returns how many were admitted, and the
// Retry-After of the last 429.
func (b burst) send(t *testing.T, h http.Handler) (admitted int, retryAfter string) {
	t.Helper()
	for range b.requests {
		method, path, _ := strings.Cut(b.target, " ")
		r := httptest.NewRequest(method, path, nil)
		r.RemoteAddr = "10.0.0.1:1234"
		r.Header.Set("X-Forwarded-For", b.client)
		r.Header.Set("X-User", b.client)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		switch w.Code {
		case http.StatusOK:
			admitted++
		case http.StatusTooManyRequests:
			retryAfter = w.Header().Get("Retry-After")
		default:
			t.Fatalf("%s: status %d: %s", b.target, w.Code, w.Body)
		}
	}
	return admitted, retryAfter
}

func TestSameLimits(t *testing.T) {
	for _, m := range migrations {
		t.Run(m.from, func(t *testing.T) {
			var before http.Handler
			if m.outside {
				before = m.before()
			}
			synctest.Test(t, func(t *testing.T) { // begins at midnight
				after := m.after()
				if !m.outside {
					before = m.before()
				}
				var retryBefore, retryAfter string
				for _, b := range m.bursts {
					time.Sleep(b.wait)
					var admittedBefore, admittedAfter int
					admittedBefore, retryBefore = b.send(t, before)
					admittedAfter, retryAfter = b.send(t, after)
					if admittedBefore != b.want || admittedAfter != b.want {
						t.Errorf("%v: of %d requests to %s, %d were admitted before and %d after, want %d",
							time.Now().UTC(), b.requests, b.target, admittedBefore, admittedAfter, b.want)
					}
				}
				if retryBefore != m.retryBefore || retryAfter != m.retryAfter {
					t.Errorf("the last Retry-After was %q before and is %q after, want %q and %q",
						retryBefore, retryAfter, m.retryBefore, m.retryAfter)
				}
			})
		})
	}
}
