package telemetry

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/metric"

	"github.com/animalstore/gatehouse/middleware/bearer"
)

// outcomes is the number of outcomes of package bearer.
const outcomes = int(bearer.Repeated) + 1

func (t *Telemetry) createAuthentication() error {
	requests, err := t.counter("gatehouse.authentication.requests", "{request}", "Requests by what their credentials are")
	if err != nil {
		return err
	}
	for i := range t.authentication {
		t.authentication[i].attrs = with(resultKey.String(bearer.Outcome(i).String()))
	}
	return t.register(func(_ context.Context, o metric.Observer) error {
		for i := range t.authentication {
			t.authentication[i].observe(o, requests)
		}
		return nil
	}, requests)
}

// Authentication is a middleware that counts requests by the outcome of their
// authentication. Place it directly inside Identify of a [bearer.Authenticator]; a
// request that has not passed Identify counts as unidentified.
func (t *Telemetry) Authentication(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o := int(bearer.OutcomeFrom(r.Context())); o < outcomes {
			t.authentication[o].n.Add(1)
		}
		next.ServeHTTP(w, r)
	})
}
