package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/nilvalue"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/ratelimit"
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

// Unbanned counts a ban that [ratelimit.Banner].Unban ended before its time.
func (t *Telemetry) Unbanned() {
	if t != nil {
		t.unbanned.n.Add(1)
	}
}

// The engine lists its bans for one gauge, which may mean a walk through all keys of a
// Redis. bansPeriod is the shortest time between two lists, and bansTimeout the time in
// which the engine must answer.
const (
	bansPeriod  = 15 * time.Second
	bansTimeout = 2 * time.Second
)

// ObserveBans reports how many bans are in force. It asks b when the MeterProvider
// collects, but at most every 15 seconds, and waits for at most two seconds. While b
// fails, the gauge has no value.
func (t *Telemetry) ObserveBans(b ratelimit.Banner) error {
	if t == nil {
		return nil
	}
	if nilvalue.In(b) {
		return errors.New("telemetry: ObserveBans: the engine must not be nil")
	}
	active, err := t.gauge("gatehouse.bans.active", "{ban}", "Bans in force")
	if err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	list := banList{banner: b}
	return t.register(func(ctx context.Context, o metric.Observer) error {
		if n, ok := list.len(ctx); ok {
			o.ObserveInt64(active, n)
		}
		return nil
	}, active)
}

// banList remembers how many bans there were.
type banList struct {
	banner ratelimit.Banner

	mu    sync.Mutex
	asked time.Time // zero: never
	n     int64
	ok    bool // the banner has answered
}

func (l *banList) len(ctx context.Context) (n int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.asked.IsZero() && time.Since(l.asked) < bansPeriod {
		return l.n, l.ok
	}
	ctx, cancel := context.WithTimeout(ctx, bansTimeout)
	defer cancel()
	bans, err := l.banner.Bans(ctx)
	l.asked, l.n, l.ok = time.Now(), int64(len(bans)), err == nil
	return l.n, l.ok
}
