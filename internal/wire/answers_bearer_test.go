package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

var authentication = part{
	title: "Authentication",
	text:  "Package `middleware/bearer`. The realm and the name of the token are the service's.",
	answers: []answer{
		{
			name: "bearer_missing", title: "No token",
			text:    "There is no Authorization field, or one of another scheme. Send the token.",
			handler: func(t *testing.T) http.Handler { return protected(t, bearer.ErrInvalid) },
		},
		{
			name: "bearer_limited", title: "No token, inside a rate limit",
			text: "The order is that of `auth.Identify(limit(auth.Require(api)))`, and requests without a valid token are charged to the network. Every refusal further in has the fields, also 404, 405, 413 and 5xx.",
			handler: func(t *testing.T) http.Handler {
				network := ratelimit.Caller{Subject: "network:192.0.2.1/32", Plan: free, Kind: ratelimit.KindNetwork}
				auth := authenticator(t, bearer.ErrInvalid)
				return auth.Identify(limiter(t, newEngine(t), network, limit.Options{})(auth.Require(pets)))
			},
		},
		{
			name: "bearer_invalid", title: "Invalid token",
			text:    "The token is malformed, unknown, expired or revoked; the response does not say which. A retry does not help: get a new token.",
			request: withField("Authorization: Bearer secret"),
			handler: func(t *testing.T) http.Handler { return protected(t, bearer.ErrInvalid) },
		},
		{
			name: "bearer_repeated", title: "Two Authorization fields",
			text:    "A fault of the client, or of a proxy that adds a field and does not replace it.",
			request: withField("Authorization: Bearer secret\nAuthorization: Bearer secret"),
			handler: func(t *testing.T) http.Handler { return protected(t, bearer.ErrInvalid) },
		},
		{
			name: "bearer_unavailable", title: "Token not verified",
			text:    "The service could not verify the token, such as during an outage of its database. There is no challenge, since the token may be valid: keep it, and retry.",
			request: withField("Authorization: Bearer secret"),
			handler: func(t *testing.T) http.Handler { return protected(t, errors.New("the database does not answer")) },
		},
	},
}

// protected returns pets behind an authenticator that fails to verify tokens with err.
func protected(t *testing.T, err error) http.Handler { return authenticator(t, err).Protect(pets) }

func authenticator(t *testing.T, err error) *bearer.Authenticator[string] {
	verify := func(context.Context, string) (string, error) { return "", fmt.Errorf("verify: %w", err) }
	return must[*bearer.Authenticator[string]](t)(bearer.New("pets", verify, bearer.Options{Errors: quiet}))
}
