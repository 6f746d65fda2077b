package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/animalstore/gatehouse/middleware/inflight"
)

const limiterKey = attribute.Key("gatehouse.limiter")

// ObserveInFlight reports the requests in progress that a limiter counts. name tells the
// limiters of a service apart, such as "process" and "owners"; call it once for each.
func (t *Telemetry) ObserveInFlight(name string, l *inflight.Limiter) error {
	if t == nil {
		return nil
	}
	if l == nil {
		return errors.New("telemetry: ObserveInFlight: the limiter must not be nil")
	}
	var errs [4]error
	requests, err := t.counter("gatehouse.in_flight.requests", "{request}", "Requests that a limit on requests in progress admitted or refused")
	errs[0] = err
	running, err := t.gauge("gatehouse.in_flight.running", "{request}", "Requests in progress")
	errs[1] = err
	waiting, err := t.gauge("gatehouse.in_flight.waiting", "{request}", "Requests that wait for another one to finish")
	errs[2] = err
	subjects, err := t.gauge("gatehouse.in_flight.subjects", "{subject}", "Subjects with a request in progress")
	errs[3] = err
	if err := errors.Join(errs[:]...); err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	limiter := limiterKey.String(name)
	attrs := with(limiter)
	admitted, refused := with(limiter, resultKey.String("admitted")), with(limiter, resultKey.String("refused"))
	return t.register(func(_ context.Context, o metric.Observer) error {
		s := l.Stats()
		o.ObserveInt64(requests, int64(s.Admitted), admitted)
		o.ObserveInt64(requests, int64(s.Refused), refused)
		o.ObserveInt64(running, int64(s.Running), attrs)
		o.ObserveInt64(waiting, int64(s.Waiting), attrs)
		o.ObserveInt64(subjects, int64(s.Subjects), attrs)
		return nil
	}, requests, running, waiting, subjects)
}

// deprecated counts requests for deprecated operations.
type deprecated struct {
	mu         sync.Mutex
	operations map[string]*count // at most maxOperations, and other
}

func (t *Telemetry) createDeprecated() error {
	d := &t.deprecated
	d.operations = make(map[string]*count)
	requests, err := t.counter("gatehouse.deprecation.requests", "{request}", "Requests for deprecated operations")
	if err != nil {
		return err
	}
	return t.register(func(_ context.Context, o metric.Observer) error {
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
