package telemetry

import (
	"context"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/animalstore/gatehouse/internal/nilvalue"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/inflight"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// outcomes is the number of outcomes of package bearer.
const outcomes = int(bearer.Refused) + 1

func (t *Telemetry) makeAuthentication(m *maker) {
	requests := m.counter("gatehouse.authentication.requests", "{request}", "Requests by what their credentials are")
	for i := range t.authentication {
		t.authentication[i].attrs = with(resultKey.String(bearer.Outcome(i).String()))
	}
	m.observe(func(_ context.Context, o metric.Observer) error {
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
		t.CallAuthentication(r.Context())
		next.ServeHTTP(w, r)
	})
}

// CallAuthentication is [Telemetry.Authentication] for calls of gRPC and of Connect. Call it
// in an interceptor directly inside the one that identifies:
//
//	func count(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
//		t.CallAuthentication(ctx)
//		return handler(ctx, req)
//	}
func (t *Telemetry) CallAuthentication(ctx context.Context) {
	if t == nil {
		return
	}
	if o := int(bearer.OutcomeFrom(ctx)); o < outcomes {
		t.authentication[o].n.Add(1)
	}
}

// Unbanned counts a ban that [engine.Banner].Unban ended before its time.
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
func (t *Telemetry) ObserveBans(b engine.Banner) error {
	list := banList{banner: b}
	return t.observe("ObserveBans: the engine", nilvalue.In(b), func(m *maker) {
		active := m.gauge("gatehouse.bans.active", "{ban}", "Bans in force")
		m.observe(func(ctx context.Context, o metric.Observer) error {
			if n, ok := list.len(ctx); ok {
				o.ObserveInt64(active, n)
			}
			return nil
		}, active)
	})
}

// banList remembers how many bans there were.
type banList struct {
	banner engine.Banner

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

const limiterKey = attribute.Key("gatehouse.limiter")

// ObserveInFlight reports the requests in progress that a limiter counts. name tells the
// limiters of a service apart, such as "process" and "owners"; call it once for each.
func (t *Telemetry) ObserveInFlight(name string, l *inflight.Limiter) error {
	limiter := limiterKey.String(name)
	admitted, refused := with(limiter, resultKey.String("admitted")), with(limiter, resultKey.String("refused"))
	return t.observe("ObserveInFlight: the limiter", l == nil, func(m *maker) {
		requests := m.counter("gatehouse.in_flight.requests", "{request}", "Requests that a limit on requests in progress admitted or refused")
		m.observe(func(_ context.Context, o metric.Observer) error {
			s := l.Stats()
			o.ObserveInt64(requests, int64(s.Admitted), admitted)
			o.ObserveInt64(requests, int64(s.Refused), refused)
			return nil
		}, requests)
		m.read(func() []int64 {
			s := l.Stats()
			return []int64{int64(s.Unshared), int64(s.Running), int64(s.Waiting), int64(s.Subjects)}
		}, with(limiter),
			m.counter("gatehouse.in_flight.unshared", "{request}", "Requests admitted by the limit of this process alone, because the shared one could not decide"),
			m.gauge("gatehouse.in_flight.running", "{request}", "Requests in progress"),
			m.gauge("gatehouse.in_flight.waiting", "{request}", "Requests that wait for another one to finish"),
			m.gauge("gatehouse.in_flight.subjects", "{subject}", "Subjects with a request in progress"))
	})
}

// deprecated counts requests for deprecated operations.
type deprecated struct {
	mu         sync.Mutex
	operations map[string]*count // at most maxOperations, and other
}

func (t *Telemetry) makeDeprecated(m *maker) {
	d := &t.deprecated
	d.operations = make(map[string]*count)
	requests := m.counter("gatehouse.deprecation.requests", "{request}", "Requests for deprecated operations")
	m.observe(func(_ context.Context, o metric.Observer) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, c := range d.operations {
			c.observe(o, requests)
		}
		return nil
	}, requests)
}

// DeprecatedUse returns a function that counts a request for a deprecated operation. It
// is for deprecation.Options.OnUse. The operation is a name that the service gives,
// such as the operationId of its OpenAPI document; calls with the same name feed the
// same series.
func (t *Telemetry) DeprecatedUse(operation string) func(*http.Request) {
	if t == nil {
		return func(*http.Request) {}
	}
	c := t.deprecated.operation(operation)
	return func(*http.Request) { c.n.Add(1) }
}

func (d *deprecated) operation(name string) *count {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.operations[name]; !ok && len(d.operations) >= maxOperations {
		name = other
	}
	c, ok := d.operations[name]
	if !ok {
		c = &count{attrs: with(operationKey.String(name))}
		d.operations[name] = c
	}
	return c
}
