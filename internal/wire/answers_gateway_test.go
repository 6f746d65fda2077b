package wire

import (
	"context"
	"errors"
	"net/http"
	"net/http/httputil"
	"testing"

	"github.com/animalstore/gatehouse/middleware/gateway"
)

var gateways = part{
	title: "Gateways",
	text:  "Package `middleware/gateway`. Errors that the backend sends pass unchanged. Retry these two with growing pauses if the request can be repeated: the backend may have carried it out.",
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
	},
}

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
