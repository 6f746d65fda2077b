package clientip_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"github.com/animalstore/gatehouse/middleware/clientip"
)

func Example() {
	source := clientip.FromRemoteAddr()

	r := httptest.NewRequest("GET", "/v1/pets", nil)
	r.RemoteAddr = "[2001:db8:0:1::5]:4711"
	addr := source.Addr(r)
	fmt.Println(addr)
	fmt.Println(clientip.NetworkSubject(addr))
	// Output:
	// 2001:db8:0:1::5
	// network:2001:db8:0:1::/64
}

func ExampleFromXForwardedFor() {
	trusted, err := clientip.ParsePrefixes([]string{"10.0.0.0/8"})
	if err != nil {
		fmt.Println(err)
		return
	}
	source, err := clientip.FromXForwardedFor(trusted)
	if err != nil {
		fmt.Println(err)
		return
	}

	r := httptest.NewRequest("GET", "/v1/pets", nil)
	r.RemoteAddr = "10.0.0.1:4711"
	r.Header.Set("X-Forwarded-For", "8.8.8.8, 203.0.113.9, 10.0.0.2") // 8.8.8.8 is the client's claim
	fmt.Println(source.Addr(r))
	// Output:
	// 203.0.113.9
}

// A proxy that connects over a Unix socket has no address to trust. The service
// that owns the socket gives it one.
func ExampleFromXForwardedFor_unixSocket() {
	source := must(clientip.FromXForwardedFor([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}))
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(source.Addr(r))
	})
	// Only for a server that listens on the socket and nowhere else.
	overSocket := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local := *r
		local.RemoteAddr = "127.0.0.1:0"
		handler.ServeHTTP(w, &local)
	})

	r := httptest.NewRequest("GET", "/v1/pets", nil)
	r.RemoteAddr = "@"
	r.Header.Set("X-Forwarded-For", "203.0.113.9")
	overSocket.ServeHTTP(httptest.NewRecorder(), r)
	// Output:
	// 203.0.113.9
}

func ExampleFromForwarded() {
	source := must(clientip.FromForwarded([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}))

	r := httptest.NewRequest("GET", "/v1/pets", nil)
	r.RemoteAddr = "10.0.0.1:4711"
	r.Header.Add("Forwarded", `for=8.8.8.8`) // the client's claim
	r.Header.Add("Forwarded", `for="[2001:db8::17]:4711";proto=https, for=10.0.0.2`)
	fmt.Println(source.Addr(r))
	// Output:
	// 2001:db8::17
}

// If a trusted proxy does not say what its client's address is, the requests of all
// its clients are counted together. The service logs that.
func ExampleSource_Resolve() {
	source := must(clientip.FromXForwardedFor([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}))

	for _, forwarded := range []string{"203.0.113.9", "", "203.0.113.9, unknown"} {
		r := httptest.NewRequest("GET", "/v1/pets", nil)
		r.RemoteAddr = "10.0.0.1:4711"
		if forwarded != "" {
			r.Header.Set("X-Forwarded-For", forwarded)
		}
		addr, err := source.Resolve(r)
		switch {
		case errors.Is(err, clientip.ErrAbsent):
			fmt.Println(addr, "sends no header")
		case err != nil:
			fmt.Println(addr, "sends something else:", err)
		default:
			fmt.Println(addr)
		}
	}
	// Output:
	// 203.0.113.9
	// 10.0.0.1 sends no header
	// 10.0.0.1 sends something else: clientip: entry is not an address: X-Forwarded-For: "unknown"
}
