package wire

import (
	"context"
	"errors"
	"net/http"
	"net/http/httputil"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/middleware/gateway"
)

var gateways = part{
	title: "Gateways",
	text:  "Package `middleware/gateway`. Errors that the backend sends pass unchanged. Retry `bad_gateway` and `gateway_timeout` with growing pauses if the request can be repeated: the backend may have carried it out.",
	answers: []answer{
		{
			name: "bad_gateway", title: "Bad gateway",
			text:    "The backend cannot be reached, or its response is not usable.",
			handler: func(t *testing.T) http.Handler { return forwarded(t, errors.New("connection refused")) },
		},
		{
			name: "gateway_timeout", title: "Gateway timeout",
			text:    "The backend did not answer in time.",
			handler: func(t *testing.T) http.Handler { return forwarded(t, context.DeadlineExceeded) },
		},
		{
			name: "backend_limited", title: "Limit of the backend",
			text:    "The gateway has used up what the backend allows it, and keeps requests back until Retry-After has passed. The backend has not carried out the request.",
			handler: func(t *testing.T) http.Handler { return forwarded(t, usedUp(17*time.Second)) },
		},
	},
}

// usedUp is an error like that of package transport.
type usedUp time.Duration

func (u usedUp) Error() string             { return "the backend limits this client" }
func (u usedUp) RetryAfter() time.Duration { return time.Duration(u) }

// forwarded returns a gateway to a backend that fails with err.
func forwarded(t *testing.T, err error) http.Handler {
	return must[http.Handler](t)(gateway.New(&httputil.ReverseProxy{
		Rewrite:   func(p *httputil.ProxyRequest) { p.Out.URL.Scheme, p.Out.URL.Host = "http", "backend" },
		Transport: broken{err},
	}, quiet))
}

// broken is a Transport without a backend.
type broken struct{ err error }

func (b broken) RoundTrip(*http.Request) (*http.Response, error) { return nil, b.err }
