package telemetry

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/metric"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/nilvalue"
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
		t.countAuthentication(r.Context())
		next.ServeHTTP(w, r)
	})
}

func (t *Telemetry) countAuthentication(ctx context.Context) {
	if o := int(bearer.OutcomeFrom(ctx)); o < outcomes {
		t.authentication[o].n.Add(1)
	}
}

// An Authenticator finds the principals of calls for the interceptors of gatehousegrpc and
// gatehouseconnect. A *[bearer.Authenticator] is one.
type Authenticator interface {
	IdentifyCall(ctx context.Context, method string, authorization []string) context.Context
	RequireCall(ctx context.Context, method string) (http.Header, *apierror.Error)
}

// CallAuthentication is [Telemetry.Authentication] for calls of gRPC and of Connect. It
// returns an Authenticator that counts the calls which a identifies:
//
//	gatehousegrpc.UnaryIdentify(t.CallAuthentication(auth))
//
// It returns a nil pointer as it is, which the interceptors refuse.
func (t *Telemetry) CallAuthentication(a Authenticator) Authenticator {
	if t == nil || nilvalue.In(a) {
		return a
	}
	return countedCalls{a, t}
}

type countedCalls struct {
	Authenticator
	telemetry *Telemetry
}

func (c countedCalls) IdentifyCall(ctx context.Context, method string, authorization []string) context.Context {
	ctx = c.Authenticator.IdentifyCall(ctx, method, authorization)
	c.telemetry.countAuthentication(ctx)
	return ctx
}
