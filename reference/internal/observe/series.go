package observe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// series holds the attributes of the series of a histogram, so that a measurement does
// not make them anew. There must be few keys.
type series[K comparable] struct {
	attributes func(K) []attribute.KeyValue

	mu    sync.Mutex
	known atomic.Pointer[map[K][]metric.RecordOption] // replaced, never changed
}

// of returns the attributes of a series.
func (s *series[K]) of(key K) []metric.RecordOption {
	if known := s.known.Load(); known != nil {
		if options, ok := (*known)[key]; ok {
			return options
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[K][]metric.RecordOption)
	if known := s.known.Load(); known != nil {
		maps.Copy(all, *known)
	}
	all[key] = []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(s.attributes(key)...))}
	s.known.Store(&all)
	return all[key]
}

// Dates are what will happen to a server if nobody acts. The functions are called when
// metrics are collected, must be safe for concurrent use, and must not be nil.
type Dates struct {
	Sunsets     func() map[string]time.Time // when deprecated operations are removed, by operationId
	Certificate func() time.Time            // when the certificate expires; zero: there is none
}

// ObserveDates reports dates as seconds since 1970, as Prometheus compares them with
// time(). Call it once.
func (o *Observer) ObserveDates(d Dates) error {
	sunset, err1 := o.meter.Int64ObservableGauge("petstore.deprecation.sunset_timestamp", metric.WithUnit("s"),
		metric.WithDescription("Unix time from which a deprecated operation is removed"))
	expiry, err2 := o.meter.Int64ObservableGauge("petstore.certificate.expiry_timestamp", metric.WithUnit("s"),
		metric.WithDescription("Unix time at which the certificate in use expires"))
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("observe: %w", err)
	}
	return o.register(func(_ context.Context, to metric.Observer) error {
		for operation, at := range d.Sunsets() {
			to.ObserveInt64(sunset, at.Unix(), metric.WithAttributes(attribute.String("gatehouse.operation", operation)))
		}
		if at := d.Certificate(); !at.IsZero() {
			to.ObserveInt64(expiry, at.Unix())
		}
		return nil
	}, sunset, expiry)
}
