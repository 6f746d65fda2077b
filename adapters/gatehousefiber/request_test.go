package gatehousefiber_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/gofiber/fiber/v3"

	"github.com/animalstore/gatehouse/adapters/gatehousefiber"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// identify gets a request of net/http. The address in the header counts if a trusted proxy
// has put it there. Requests of App.Test come from 0.0.0.0.
func TestRequest(t *testing.T) {
	for trusted, want := range map[string]string{"0.0.0.0/8": "203.0.113.9", "10.0.0.0/8": "0.0.0.0"} {
		source, err := clientip.FromXForwardedFor([]netip.Prefix{netip.MustParsePrefix(trusted)})
		if err != nil {
			t.Fatal(err)
		}
		limited, err := gatehousefiber.New(engine(t), func(r *http.Request) (ratelimit.Caller, error) {
			if got := source.Addr(r).String(); got != want {
				t.Errorf("with %s trusted the client is %s, want %s", trusted, got, want)
			}
			if r.Method != "PUT" || r.URL.String() != "/pets/a%20b?x=1" || r.Host != "example.com" || r.Header.Get("User") != "ann" {
				t.Errorf("identify gets %+v", r)
			}
			return ratelimit.Caller{Subject: "ann", Plan: plan}, nil
		}, limit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		a := fiber.New()
		a.Use(limited)
		r := httptest.NewRequest("PUT", "/pets/a%20b?x=1", nil)
		r.Header["X-Forwarded-For"] = []string{"6.6.6.6", "203.0.113.9, 0.0.0.2"}
		r.Header.Set("User", "ann")
		if _, err := a.Test(r, fiber.TestConfig{Timeout: 0}); err != nil {
			t.Fatal(err)
		}
	}
}
