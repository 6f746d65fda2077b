package wire

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/middleware"
)

var requests = part{
	title: "Paths, bodies and failures",
	text:  "Packages `apierror` and `middleware`. Only the last of these is worth a retry.",
	answers: []answer{
		{
			name: "not_found", title: "Not found",
			text:    "Nothing is at this path. Paths are exact: there are no redirects from `//v1/pets` or `/v1/pets/`.",
			request: "GET /v1/dogs HTTP/1.1\nHost: api.example.com\n\n",
			handler: routes,
		},
		{
			name: "not_found_problem", title: "Not found, problem details",
			text:    "Most errors have the type `about:blank`: they mean what their status says. The `code` is the same in both forms.",
			request: "GET /v1/dogs HTTP/1.1\nHost: api.example.com\nAccept: application/problem+json\n\n",
			handler: routes,
		},
		{
			name: "method_not_allowed", title: "Method not allowed",
			text:    "Allow lists the methods that the path has.",
			request: "DELETE /v1/pets HTTP/1.1\nHost: api.example.com\n\n",
			handler: routes,
		},
		{
			name: "body_too_large", title: "Body too large, declared",
			text:    "Content-Length exceeds the limit. The server answers without reading the body, and closes the connection. If the client sends `Expect: 100-continue`, it gets this answer before it has sent the body.",
			request: "POST /v1/pets HTTP/1.1\nHost: api.example.com\nContent-Type: application/json\nContent-Length: 70000\n\n",
			handler: routes,
		},
		{
			name: "body_too_large_chunked", title: "Body too large, without a length",
			text:    "The limit was reached while the body was read. A client that is still sending stops. The connection cannot be used again.",
			request: "POST /v1/pets HTTP/1.1\nHost: api.example.com\nContent-Type: application/json\nTransfer-Encoding: chunked\n\n",
			rest:    "10001\r\n" + strings.Repeat("x", 0x10001),
			handler: routes,
		},
		{
			name: "uri_too_long", title: "Target too long",
			text:    "Path and query are longer than the limit, here 40 bytes.",
			request: "GET /v1/pets?name=Rumpelstiltskin&status=available HTTP/1.1\nHost: api.example.com\n\n",
			handler: routes,
		},
		{
			name: "internal", title: "Failure of the service",
			text: "The service failed, by an error or a panic. The cause is only in its log. Retry with growing pauses if the request can be repeated.",
			handler: func(*testing.T) http.Handler {
				return quiet.Handle(func(http.ResponseWriter, *http.Request) error { return errors.New("the disk is full") })
			},
		},
	},
}

// routes returns a mux with GET and POST /v1/pets behind limits on the body and the target.
func routes(*testing.T) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /v1/pets", pets)
	mux.Handle("POST /v1/pets", quiet.Handle(func(w http.ResponseWriter, r *http.Request) error {
		_, err := io.Copy(io.Discard, r.Body)
		return err
	}))
	return middleware.Chain(quiet.Mux(mux), middleware.TargetLimit(40, quiet), middleware.BodyLimit(64<<10, quiet))
}
