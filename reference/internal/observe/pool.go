package observe

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/metric"

	"github.com/animalstore/gatehouse/reference/internal/database"
)

// ObservePool reports how the connections to PostgreSQL are used. The function is called
// when metrics are collected, must be safe for concurrent use, and may be nil: then
// there is no pool, and nothing is reported. Call it once.
//
// The semantic conventions of OpenTelemetry have db.client.connection.count and others
// for this, which are not stable.
func (o *Observer) ObservePool(pool func() database.Pool) error {
	if pool == nil {
		return nil
	}
	var errs []error
	gauge := func(name, description string) metric.Int64ObservableGauge {
		g, err := o.meter.Int64ObservableGauge("petstore.database.connections."+name, metric.WithUnit("{connection}"), metric.WithDescription(description))
		errs = append(errs, err)
		return g
	}
	counter := func(name, description string) metric.Int64ObservableCounter {
		c, err := o.meter.Int64ObservableCounter("petstore.database."+name, metric.WithUnit("{call}"), metric.WithDescription(description))
		errs = append(errs, err)
		return c
	}
	used := gauge("used", "Connections to PostgreSQL with a running call")
	idle := gauge("idle", "Connections to PostgreSQL without a running call")
	most := gauge("max", "Maximum number of connections to PostgreSQL (pool_max_conns)")
	waits := counter("waits", "Calls of the database that waited for a connection and got one")
	timeouts := counter("wait_timeouts", "Calls of the database that got no connection in time")
	waited, err := o.meter.Float64ObservableCounter("petstore.database.wait_time", metric.WithUnit("s"),
		metric.WithDescription("Time that calls of the database waited for a connection"))
	if err := errors.Join(append(errs, err)...); err != nil {
		return fmt.Errorf("observe: %w", err)
	}
	return o.register(func(_ context.Context, to metric.Observer) error {
		p := pool()
		to.ObserveInt64(used, p.Used)
		to.ObserveInt64(idle, p.Idle)
		to.ObserveInt64(most, p.Max)
		to.ObserveInt64(waits, p.Waits)
		to.ObserveInt64(timeouts, p.WaitTimeouts)
		to.ObserveFloat64(waited, p.Waited.Seconds())
		return nil
	}, used, idle, most, waits, timeouts, waited)
}
