package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
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

var authentication = part{
	title: "Authentication",
	text:  "Package `middleware/bearer`. The realm and the name of the token are the service's. `Options.ResourceMetadata` adds `resource_metadata` to challenges (RFC 9728).",
	answers: []answer{
		{
			name: "bearer_missing", title: "No token",
			text:    "There is no Authorization field, or one of another scheme. Send the token.",
			handler: protected(bearer.ErrInvalid),
		},
		{
			name: "bearer_limited", title: "No token, inside a rate limit",
			text: "The order is `auth.Identify(limit(auth.Require(api)))`, and requests without a valid token are charged to the network. Every refusal further in has the fields, also 404, 405, 413 and 5xx.",
			handler: func(t *testing.T) http.Handler {
				network := ratelimit.Caller{Subject: "network:192.0.2.1/32", Plan: free, Kind: ratelimit.KindNetwork}
				auth := authenticator(bearer.ErrInvalid)
				return auth.Identify(limiter(newEngine(), network, limit.Options{})(auth.Require(pets)))
			},
		},
		{
			name: "bearer_invalid", title: "Invalid token",
			text:    "The token is malformed, unknown, expired or revoked; the response does not say which. A retry does not help: get a new token.",
			request: withField("Authorization: Bearer secret"),
			handler: protected(bearer.ErrInvalid),
		},
		{
			name: "bearer_repeated", title: "Two Authorization fields",
			text:    "A fault of the client, or of a proxy that adds a field and does not replace it.",
			request: withField("Authorization: Bearer secret\nAuthorization: Bearer secret"),
			handler: protected(bearer.ErrInvalid),
		},
		{
			name: "bearer_unavailable", title: "Token not verified",
			text:    "The service could not verify the token. There is no challenge, since the token may be valid: keep it, and retry.",
			request: withField("Authorization: Bearer secret"),
			handler: protected(errors.New("the database does not answer")),
		},
		{
			name: "bearer_guessed", title: "Token not looked up",
			text:    "The network has sent too many tokens that are not valid (`apikey.Options.Guesses`). This one may be valid: keep it, and retry.",
			request: withField("Authorization: Bearer secret"),
			handler: func(*testing.T) http.Handler {
				guesses := ratelimit.MustPlan("guesses", ratelimit.Penalty{}, ratelimit.PerMinute(1))
				verifier := testcheck.Must(apikey.NewVerifier(nil, noKeys{}, apikey.Options{Guesses: guesses, Now: time.Now}))
				h := testcheck.Must(bearer.New("pets", verifier.Verify, bearer.Options{Errors: quiet})).Protect(pets)
				r := httptest.NewRequest("GET", "/v1/pets", nil)
				r.RemoteAddr = "127.0.0.1:4711"
				r.Header.Set("Authorization", "Bearer guess")
				h.ServeHTTP(httptest.NewRecorder(), r)
				return h
			},
		},
	},
}

type noKeys struct{}

func (noKeys) Lookup(context.Context, apikey.Digest) (apikey.Record[apikey.Principal], error) {
	return apikey.Record[apikey.Principal]{}, apikey.ErrUnknown
}

// protected returns pets behind an authenticator that fails to verify tokens with err.
func protected(err error) state {
	return func(t *testing.T) http.Handler {
		return authenticator(err).Protect(pets)
	}
}

func authenticator(err error) *bearer.Authenticator[string] {
	verify := func(context.Context, string) (string, error) { return "", fmt.Errorf("verify: %w", err) }
	return testcheck.Must(bearer.New("pets", verify, bearer.Options{Errors: quiet}))
}

var deprecated = part{
	title: "Deprecated operations",
	text:  "Package `deprecation`. In Go, package `ratelimit/transport` logs each notice once.",
	answers: []answer{
		{
			name: "deprecated", title: "Deprecated",
			text:    "The operation still works. Deprecation (RFC 9745) says since when it is deprecated, in Unix seconds, and Sunset (RFC 8594) when it is removed. Log both with the links, and call the successor before the sunset.",
			handler: declared(time.Date(2026, time.June, 1, 0, 0, 0, 0, time.UTC)),
		},
		{
			name: "brownout", title: "Brownout",
			text: "A short time before the sunset in which the operation is switched off, so that its users notice. It works again after Retry-After, until the sunset.",
			handler: declared(time.Date(2026, time.June, 1, 0, 0, 0, 0, time.UTC), deprecation.Brownout{
				Start: start.Truncate(time.Hour), End: start.Truncate(time.Hour).Add(time.Hour),
			}),
		},
		{
			name: "removed", title: "Removed",
			text:    "From the sunset on. There is no Sunset field any more. There is no Retry-After, because a retry does not help: call the successor.",
			handler: declared(time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)),
		},
	},
}

// declared returns pets as a deprecated operation.
func declared(sunset time.Time, brownouts ...deprecation.Brownout) state {
	return func(t *testing.T) http.Handler {
		return testcheck.Must(deprecation.New(deprecation.Options{
			Since:         time.Date(2025, time.December, 1, 0, 0, 0, 0, time.UTC),
			Sunset:        sunset,
			Documentation: "https://api.example.com/changes#pets",
			Successor:     "/v2/pets",
			Brownouts:     brownouts,
			Errors:        quiet,
		})).Enforce(pets)
	}
}
