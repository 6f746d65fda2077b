// Gateway puts tokens, limits and errors in one envelope in front of a service that has none of
// these, with httputil.ReverseProxy. What makes the proxy safe is in checkTarget and rewrite.
//
//	go run ./examples/gateway
//	curl -i -H "Authorization: Bearer token-of-ann" http://127.0.0.1:8081/pets/rex
//	curl -i http://127.0.0.1:8081/public/%2e%2e/pets/rex
//
// The service gets X-Owner in place of the token. If it is down, clients get 502 bad_gateway,
// which is not charged.
package main

import (
	"errors"
	"fmt"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/examples/internal/demo"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/bearer"
)

var (
	errs       = &apierror.Responder{RequestID: middleware.RequestIDFrom}
	badTarget  = apierror.New(400, "invalid_request", "The request target must be a path without dot segments such as /../ and /./.")
	badGateway = apierror.New(502, "bad_gateway", "The service behind this gateway did not give a usable response.")
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	backend := &http.Server{Handler: http.HandlerFunc(service), ReadHeaderTimeout: 5 * time.Second}
	go func() { log.Fatal(backend.Serve(listener)) }()
	demo.Serve(newHandler(&url.URL{Scheme: "http", Host: listener.Addr().String()}))
}

func newHandler(target *url.URL) (http.Handler, error) {
	auth, limited, err := demo.NewGate(errs) // limited is of limit.New
	if err != nil {
		return nil, err
	}
	backend := forward(target)
	mux := http.NewServeMux()
	mux.Handle("/public/", backend)
	mux.Handle("/pets/", auth.Require(backend))
	return middleware.Chain(errs.Mux(mux),
		middleware.RequestID, middleware.AccessLog(nil), errs.Recover, middleware.SecurityHeaders,
		auth.Identify, limited, middleware.BodyLimit(1<<20, errs), checkTarget), nil
}

// checkTarget refuses each request that the service may take for another path than the mux.
// Most services resolve /public/%2e%2e/pets to /pets, and some take a backslash for a slash, or
// ignore what follows a semicolon; the mux does neither, and would ask for no token. CONNECT, *
// and URLs without a path, such as http:x, have no path to check.
func checkTarget(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bad := r.Method == http.MethodConnect || r.URL.Opaque != "" || !strings.HasPrefix(r.URL.Path, "/")
		for segment := range strings.FieldsFuncSeq(r.URL.Path, func(c rune) bool { return c == '/' || c == '\\' }) {
			name, _, _ := strings.Cut(segment, ";")
			bad = bad || name == "." || name == ".."
		}
		if bad {
			errs.Respond(w, r, badTarget)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// forward returns a handler that sends requests to the service at target. Of a field that
// middlewares and the service both set, clients get the value of the middlewares; ReverseProxy adds.
func forward(target *url.URL) http.Handler {
	proxy := httputil.ReverseProxy{ErrorHandler: fail, Rewrite: func(p *httputil.ProxyRequest) {
		rewrite(p, target)
	}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := proxy
		p.ModifyResponse = func(resp *http.Response) error {
			maps.DeleteFunc(resp.Header, func(name string, _ []string) bool { return name != "Vary" && w.Header()[name] != nil })
			return nil
		}
		p.ServeHTTP(w, r)
	})
}

// rewrite prepares a request to the service. It is not a Director, whose fields a client can
// remove by naming them in Connection.
func rewrite(p *httputil.ProxyRequest, target *url.URL) {
	p.SetURL(target) // also if the client's target is a URL with a host of its own
	p.SetXForwarded()
	h := p.Out.Header
	// Many services read X_Owner as X-Owner.
	maps.DeleteFunc(h, func(name string, _ []string) bool { return strings.Contains(name, "_") })
	h.Del("Connection")
	h.Del("Upgrade") // after one, such as to h2c, requests would pass no middleware
	h.Del("Expect")  // if a service answers with 100, ReverseProxy drops X-RateLimit-*
	h.Del("Authorization")
	owner, _ := bearer.FromContext[string](p.In.Context())
	h.Set("X-Owner", owner)
	h.Set("X-Request-Id", middleware.RequestIDFrom(p.In.Context()))
}

// fail answers a request for which there is no response of the service.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	if _, ok := errors.AsType[*apierror.Error](err); !ok { // BodyLimit has one
		err = badGateway.Wrap(err)
	}
	errs.Respond(w, r, err)
}

// service is what the gateway forwards requests to. It trusts X-Owner.
func service(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-RateLimit-Limit", "1000000") // clients of the gateway do not get this one
	fmt.Fprintf(w, "%s gets %s\n", r.Header.Get("X-Owner"), r.URL.Path)
}
