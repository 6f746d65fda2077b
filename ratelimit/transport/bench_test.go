package transport_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/transport"
)

// What a Transport adds to a request that is served.
func BenchmarkRoundTrip(b *testing.B) {
	resp := &http.Response{StatusCode: 200, Body: http.NoBody, Header: http.Header{
		"Date":                  {time.Now().UTC().Format(http.TimeFormat)},
		"X-Ratelimit-Limit":     {"60"},
		"X-Ratelimit-Remaining": {"59"},
		"X-Ratelimit-Reset":     {"1772366460"},
	}}
	rt, err := transport.New(transport.Options{Base: roundTripper(func(*http.Request) (*http.Response, error) { return resp, nil })})
	if err != nil {
		b.Fatal(err)
	}
	r, err := http.NewRequest("GET", url, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer pet_live_TF7eyhR8M87KpRnPkYcfpkhERADKEs4HBMxi")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rt.RoundTrip(r); err != nil {
			b.Fatal(err)
		}
	}
}
