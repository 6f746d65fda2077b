package gatehousefiber_test

import (
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/gofiber/fiber/v3"

	"github.com/animalstore/gatehouse/adapters/gatehousefiber"
	"github.com/animalstore/gatehouse/middleware/clientip"
)

// The address in the header counts if a trusted proxy has put it there. Requests of
// App.Test come from 0.0.0.0.
func TestClientAddr(t *testing.T) {
	for trusted, want := range map[string]string{"0.0.0.0/8": "203.0.113.9", "10.0.0.0/8": "0.0.0.0"} {
		source, err := clientip.FromXForwardedFor([]netip.Prefix{netip.MustParsePrefix(trusted)})
		if err != nil {
			t.Fatal(err)
		}
		var got netip.Addr
		a := fiber.New()
		a.Get("/", func(c fiber.Ctx) error { got = gatehousefiber.ClientAddr(c, source); return nil })
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["X-Forwarded-For"] = []string{"6.6.6.6", "203.0.113.9, 0.0.0.2"}
		if _, err := a.Test(r, fiber.TestConfig{Timeout: 0}); err != nil {
			t.Fatal(err)
		}
		if got.String() != want {
			t.Errorf("with %s trusted the client is %s, want %s", trusted, got, want)
		}
	}
}
