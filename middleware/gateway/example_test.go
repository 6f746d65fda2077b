package gateway_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/gateway"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

func Example() {
	pets := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-RateLimit-Limit", "5000") // of its own
		w.Header().Set("X-Request-Id", "unknown")
		fmt.Fprintln(w, "the pets for request", r.Header.Get("X-Request-Id"))
	}))
	defer pets.Close()
	target, err := url.Parse(pets.URL)
	if err != nil {
		fmt.Println(err)
		return
	}

	errs := &apierror.Responder{RequestID: middleware.RequestIDFrom}
	backend, err := gateway.New(&httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.SetXForwarded()
		},
	}, errs)
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := middleware.Chain(backend, middleware.RequestID, limit.ByIP(ratelimit.PerMinute(60)))

	r := httptest.NewRequest("GET", "/pets", nil)
	r.Header.Set("X-Request-Id", "r-17")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	fmt.Print(w.Body)
	fmt.Println(w.Header()["X-Request-Id"], w.Header()["X-Ratelimit-Limit"])
	// Output:
	// the pets for request r-17
	// [r-17] [60]
}

// A service that answers errors in a form of its own gets the envelope from the gateway.
func ExampleNew_envelope() {
	old := httptest.NewServer(http.NotFoundHandler()) // answers in plain text
	defer old.Close()
	target, err := url.Parse(old.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	notFound := apierror.New(http.StatusNotFound, apierror.CodeNotFound, "There is nothing at this path.")
	backend, err := gateway.New(&httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target) },
		ModifyResponse: func(resp *http.Response) error {
			if resp.StatusCode == http.StatusNotFound {
				return notFound
			}
			return nil
		},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}

	w := httptest.NewRecorder()
	backend.ServeHTTP(w, httptest.NewRequest("GET", "/cats", nil))
	fmt.Print(w.Body)
	// Output:
	// {"code":"not_found","message":"There is nothing at this path.","status":404}
}
