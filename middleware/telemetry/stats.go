package telemetry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// ObserveMemory reports the size of an embedded engine. Call it for one engine: of two,
// the series would be the same. In front of a shared engine, that is the local one.
func (t *Telemetry) ObserveMemory(l *memory.Limiter) error {
	if t == nil {
		return nil
	}
	if l == nil {
		return errors.New("telemetry: ObserveMemory: the engine must not be nil")
	}
	var errs [4]error
	subjects, err := t.gauge("gatehouse.engine.subjects", "{subject}", "Subjects in memory")
	errs[0] = err
	capacity, err := t.gauge("gatehouse.engine.capacity", "{subject}", "The most subjects in memory")
	errs[1] = err
	evictions, err := t.counter("gatehouse.engine.evictions", "{subject}", "Subjects replaced at the capacity before their windows were over")
	errs[2] = err
	refusals, err := t.counter("gatehouse.engine.refusals", "{subject}", "Subjects and strikes that found no place at the capacity")
	errs[3] = err
	if err := errors.Join(errs[:]...); err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	return t.register(func(_ context.Context, o metric.Observer) error {
		s := l.Stats()
		o.ObserveInt64(subjects, s.Subjects)
		o.ObserveInt64(capacity, s.Bound)
		o.ObserveInt64(evictions, int64(s.Evicted))
		o.ObserveInt64(refusals, int64(s.Refused))
		return nil
	}, subjects, capacity, evictions, refusals)
}

// ObserveFailover reports the circuit and the counts of a failover engine. Call it for
// one engine.
func (t *Telemetry) ObserveFailover(l *failover.Limiter) error {
	if t == nil {
		return nil
	}
	if l == nil {
		return errors.New("telemetry: ObserveFailover: the engine must not be nil")
	}
	circuit, err := t.gauge("gatehouse.failover.circuit", "", "1 for the state of the circuit that is in force, 0 for the others")
	if err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	pending, err := t.gauge("gatehouse.failover.pending", "{subject}", "Subjects whose usage is not charged to the primary yet")
	if err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	all := []metric.Observable{circuit, pending}
	var counters [5]metric.Int64ObservableCounter
	for i, c := range []struct{ name, unit, description string }{
		{"fallbacks", "{request}", "Decisions that the primary did not make"},
		{"failures", "{call}", "Calls of the primary that failed"},
		{"timeouts", "{call}", "Calls of the primary that did not answer within the budget"},
		{"opened", "{change}", "Times the circuit opened"},
		{"lost", "{request}", "Times the journal had no room"},
	} {
		if counters[i], err = t.counter("gatehouse.failover."+c.name, c.unit, c.description); err != nil {
			return fmt.Errorf("telemetry: %w", err)
		}
		all = append(all, counters[i])
	}
	closed, open := with(stateKey.String("closed")), with(stateKey.String("open"))
	return t.register(func(_ context.Context, o metric.Observer) error {
		isOpen := int64(0)
		if l.Open() {
			isOpen = 1
		}
		o.ObserveInt64(circuit, 1-isOpen, closed)
		o.ObserveInt64(circuit, isOpen, open)
		s := l.Stats()
		o.ObserveInt64(pending, s.Pending)
		for i, n := range [...]uint64{s.Fallbacks, s.Failures, s.Timeouts, s.Opened, s.Lost} {
			o.ObserveInt64(counters[i], int64(n))
		}
		return nil
	}, all...)
}

// redis measures calls of the script of package redislimit.
type redis struct {
	duration  metric.Float64Histogram
	batchSize metric.Int64Histogram
}

func (t *Telemetry) createRedis() error {
	var errs [2]error
	t.redis.duration, errs[0] = t.meter.Float64Histogram("gatehouse.redis.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of one call of the script in Redis, successful or not"),
		metric.WithExplicitBucketBoundaries(durationBounds[2:]...))
	t.redis.batchSize, errs[1] = t.meter.Int64Histogram("gatehouse.redis.batch_size", metric.WithUnit("{request}"),
		metric.WithDescription("Requests that one call of the script decides"),
		metric.WithExplicitBucketBoundaries(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000))
	return errors.Join(errs[:]...)
}

// RedisBatch measures one call of the script of package redislimit, which decided some
// requests. It is for its Options:
//
//	Observe: func(b redislimit.Batch) { t.RedisBatch(b.Requests, b.Duration) },
func (t *Telemetry) RedisBatch(requests int, took time.Duration) {
	if t == nil {
		return
	}
	t.redis.duration.Record(context.Background(), took.Seconds())
	t.redis.batchSize.Record(context.Background(), int64(requests))
}
