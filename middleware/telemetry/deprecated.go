package telemetry

import (
	"context"
	"net/http"
	"sync"

	"go.opentelemetry.io/otel/metric"
)

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
