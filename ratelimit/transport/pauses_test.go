package transport_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/transport"
)

// All requests of a key share a pause, and others do not.
func TestSharesAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429 Retry-After: 17")
		rt := newTransport(t, s, transport.Options{})
		get := func(url, key string) {
			r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Authorization", "Bearer "+key)
			if got := send(rt, r); got != "200" {
				t.Errorf("%s as %s: %s, want 200", url, key, got)
			}
		}
		go get(url, "ann")
		synctest.Wait()
		time.Sleep(time.Second)
		for range 3 {
			go get(url, "ann")
		}
		get(url, "bob")
		get("http://other.example.com/", "ann")
		time.Sleep(time.Minute)
		s.expect(t, "0s", "1s", "1s", "17s", "17s", "17s", "17s")
	})
}

// A pause that grows while requests wait for its end holds for them too.
func TestAPauseGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429 Retry-After: 10", "429 Retry-After: 20")
		rt := newTransport(t, s, transport.Options{Jitter: time.Second})
		var done sync.WaitGroup
		for range 20 {
			done.Go(func() { get(t, rt, url) })
			synctest.Wait()
		}
		done.Wait()
		// One request came back first after ten seconds, and the 20 after 20 more.
		late := 0
		for _, at := range s.arrived[2:] {
			if d, err := time.ParseDuration(at); err != nil || d < 30*time.Second || d > 34*time.Second {
				t.Errorf("a request arrived at %v, want all but two from 30s to 34s", at)
			}
			late++
		}
		if late != 20 {
			t.Errorf("%d requests arrived after the second pause, want 20", late)
		}
	})
}

// By default up to a tenth of the wait is added.
func TestJitterByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last time.Duration
		for range 200 {
			rt, err := transport.New(transport.Options{
				Base:   newScript("429 Retry-After: 50"),
				OnWait: func(_ *http.Request, wait time.Duration) { last = max(last, wait) },
			})
			if err != nil {
				t.Fatal(err)
			}
			get(t, rt, url)
		}
		if last > 55*time.Second || last < 54500*time.Millisecond {
			t.Errorf("200 clients wait up to %v, want up to 55s", last)
		}
	})
}

// During a long pause one request in 15 minutes is sent; if it is served, the pause is
// over.
func TestProbesALongPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429 Retry-After: 86400", "429 Retry-After: 40000", "broken", "500")
		rt := newTransport(t, s, transport.Options{})
		for range 60 {
			for range 2 {
				go get(t, rt, url)
				synctest.Wait()
			}
			time.Sleep(time.Minute)
		}
		for range 2 {
			if got := get(t, rt, url); got != "200" {
				t.Errorf("after an hour: %s, want 200", got)
			}
		}
		s.expect(t, "0s", "15m0s", "30m0s", "45m0s", "1h0m0s", "1h0m0s")
	})
}

// The probe of a pause takes its turn of the plan like any other request.
func TestProbeWithAPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429 Retry-After: 86400", "429 Retry-After: 86400")
		opts := withPlan(t, ratelimit.PerHour(2))
		rt := newTransport(t, s, opts)
		for range 60 {
			get(t, rt, url)
			time.Sleep(time.Minute)
		}
		s.expect(t, "0s", "15m0s") // the later probes have no turn in this hour
		if got := get(t, rt, url); got != "200" {
			t.Errorf("the probe in the next hour gets %s, want 200", got)
		}
	})
}

// Pauses that are over take no memory for long.
func TestManyKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(slices.Repeat([]string{"429 Retry-After: 3600"}, 1000)...)
		rt := newTransport(t, s, transport.Options{})
		for i := range 1000 {
			get(t, rt, fmt.Sprintf("http://%d.example.com/", i))
			time.Sleep(time.Minute)
		}
		if n := transport.Pauses(rt); n > 200 {
			t.Errorf("%d pauses are kept, want at most about 120: 60 are in force", n)
		}
	})
}

// Pauses that are in force are kept, however many they are.
func TestManyKeysAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newTransport(t, newScript(slices.Repeat([]string{"429 Retry-After: 3600"}, 300)...), transport.Options{})
		for range 2 {
			for i := range 300 { // in the second round the server would serve them
				if got := get(t, rt, fmt.Sprintf("http://%d.example.com/", i)); !strings.Contains(got, "limits this client") {
					t.Fatalf("key %d: %s, want the LimitError of its pause", i, got)
				}
			}
		}
	})
}
