package deprecation_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
)

// The instants of the pets API. The day of the removal is a Thursday.
var (
	since  = time.Date(2025, time.December, 5, 0, 0, 0, 0, time.UTC)
	sunset = time.Date(2030, time.December, 5, 0, 0, 0, 0, time.UTC)
)

const (
	deprecationValue = "@1764892800"
	sunsetValue      = "Thu, 05 Dec 2030 00:00:00 GMT"
	successor        = "/v1/pets?status=available"
	successorLink    = `</v1/pets?status=available>; rel="successor-version"`
)

// declare makes a declaration whose clock stands at now.
func declare(t testing.TB, now time.Time, o deprecation.Options) *deprecation.Declaration {
	t.Helper()
	switch o.Since {
	case unset:
		o.Since = time.Time{}
	case time.Time{}:
		o.Since = since
	}
	o.Now = func() time.Time { return now }
	d, err := deprecation.New(o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return d
}

// before is an instant of ordinary service.
var before = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
