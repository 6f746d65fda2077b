package wire

import (
	"net/http"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
)

var deprecated = part{
	title: "Deprecated operations",
	text:  "Package `deprecation`. A Go client that uses package `ratelimit/transport` reports these fields in its log, each notice once.",
	answers: []answer{
		{
			name: "deprecated", title: "Deprecated",
			text: "The operation still works. Deprecation (RFC 9745) says since when it is deprecated, in Unix seconds, and Sunset (RFC 8594) when it is removed. Log both with the links, and call the successor before the sunset.",
			handler: func(t *testing.T) http.Handler {
				return declared(t, time.Date(2026, time.June, 1, 0, 0, 0, 0, time.UTC))
			},
		},
		{
			name: "brownout", title: "Brownout",
			text: "A short time before the sunset in which the operation is switched off, so that its users notice. It works again after Retry-After, until the sunset.",
			handler: func(t *testing.T) http.Handler {
				return declared(t, time.Date(2026, time.June, 1, 0, 0, 0, 0, time.UTC), deprecation.Brownout{
					Start: start.Truncate(time.Hour), End: start.Truncate(time.Hour).Add(time.Hour),
				})
			},
		},
		{
			name: "removed", title: "Removed",
			text: "From the sunset on. There is no Sunset field any more. There is no Retry-After, because a retry does not help: call the successor.",
			handler: func(t *testing.T) http.Handler {
				return declared(t, time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC))
			},
		},
	},
}

// declared returns pets as a deprecated operation.
func declared(t *testing.T, sunset time.Time, brownouts ...deprecation.Brownout) http.Handler {
	return must[*deprecation.Declaration](t)(deprecation.New(deprecation.Options{
		Since:         time.Date(2025, time.December, 1, 0, 0, 0, 0, time.UTC),
		Sunset:        sunset,
		Documentation: "https://api.example.com/changes#pets",
		Successor:     "/v2/pets",
		Brownouts:     brownouts,
		Errors:        quiet,
	})).Enforce(pets)
}
