package benchmarks

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-chi/httprate"

	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// oneLines are middlewares that hold each address against one quota of a minute. The
// constructors are what limit.ByIP calls.
var oneLines = []struct {
	peer string
	new  func(tb testing.TB, minute int) func(http.Handler) http.Handler
}{
	{"gatehouse", func(_ testing.TB, minute int) func(http.Handler) http.Handler {
		return limit.ByIP(ratelimit.PerMinute(int64(minute)))
	}},
	{"constructors", func(tb testing.TB, minute int) func(http.Handler) http.Handler {
		p := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerMinute(int64(minute)))
		source := clientip.FromRemoteAddr()
		return newLimit(newMemory(memory.Options{}), func(r *http.Request) (ratelimit.Caller, error) {
			return ratelimit.Caller{Subject: clientip.NetworkSubject(source.Addr(r)), Plan: p}, nil
		})
	}},
	{"httprate", func(_ testing.TB, minute int) func(http.Handler) http.Handler {
		return httprate.LimitByIP(minute, minuteWindow) //nolint:staticcheck // deprecated, and the line that most services have
	}},
}

// BenchmarkByIP is one request through a limit by address.
func BenchmarkByIP(b *testing.B) {
	for _, s := range []scene{{name: "allowed", minute: roomy}, {name: "denied", minute: 1, denied: true}} {
		for _, line := range oneLines {
			b.Run("case="+s.name+"/peer="+line.peer, func(b *testing.B) {
				h, r := line.new(b, s.minute)(ok), httptest.NewRequest(http.MethodGet, "/v1/pets", nil)
				h.ServeHTTP(&discard{header: make(http.Header)}, r)
				s.serve(b, h, r)
			})
		}
	}
}
