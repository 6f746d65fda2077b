package limit_test

import (
	"io"
	"log/slog"
	"testing"

	"github.com/animalstore/gatehouse/middleware/limit"
)

// Whatever a client sends, it is answered with 200 or 429, and the same bytes count as the
// same client.
func FuzzRequests(f *testing.F) {
	f.Add("192.0.2.1:1", "key", "198.51.100.1")
	f.Add("10.0.0.1:1", "", "")
	f.Add("[2001:db8::1%eth0]:80", "a\nnetwork:192.0.2.1/32", "unknown, 10.0.0.1")
	f.Add("@", "\n", ",")
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	f.Fuzz(func(t *testing.T, addr, value, forwarded string) {
		for name, clients := range map[string]limit.Clients{"direct": {}, "behind": limit.Behind("10.0.0.0/8")} {
			byUser := around(t, clients.ByUser(userField, perYear(1)))
			header := []string{"User", value, "X-Forwarded-For", forwarded}
			if first, second := byUser.send(addr, header...).Code, byUser.send(addr, header...).Code; first != 200 || second != 429 {
				t.Errorf("%s: %d and %d, want 200 and 429", name, first, second)
			}
		}
	})
}
