package transport_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/transport"
)

// delays answers each request after the time in its path, and then as script does.
type delays struct{ *script }

func (d delays) RoundTrip(r *http.Request) (*http.Response, error) {
	wait, err := time.ParseDuration(strings.TrimPrefix(r.URL.Path, "/"))
	if err != nil {
		return nil, err
	}
	time.Sleep(wait)
	return d.script.RoundTrip(r)
}

// Of two requests that were on their way together, the longer pause counts, whichever
// answer comes first, also if one of them is the first after an earlier pause.
func TestTheLongerPauseCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429 Retry-After: 5", "429 Retry-After: 60", "429 Retry-After: 10")
		rt := newTransport(t, delays{s}, transport.Options{MaxWait: -1})
		const host = "http://api.example.com/"
		get(t, rt, host+"0s")
		time.Sleep(6 * time.Second)
		go get(t, rt, host+"3s") // its pause of 10s is shorter
		synctest.Wait()
		go get(t, rt, host+"1s")
		time.Sleep(20 * time.Second)
		if got := get(t, rt, host+"0s"); !strings.Contains(got, "until 2000-01-01T00:01:07Z") {
			t.Errorf("20 seconds later: %s, want a LimitError until 60 seconds after the second answer", got)
		}
		s.expect(t, "0s", "7s", "9s")
	})
}
