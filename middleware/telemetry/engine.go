package telemetry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/animalstore/gatehouse/internal/nilvalue"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/lease"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// An engineMeter measures decisions.
type engineMeter struct {
	duration metric.Float64Histogram
	results  [ratelimit.Suspended + 1][]metric.RecordOption // by outcome
}

// durationBounds are the bounds of the buckets of durations in seconds. The smallest
// are for an engine in memory.
var durationBounds = []float64{
	0.000_001, 0.000_01, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
}

func (t *Telemetry) makeEngine(m *maker) {
	for outcome := range t.engine.results {
		t.engine.results[outcome] = []metric.RecordOption{with(resultKey.String(ratelimit.Outcome(outcome).String()))}
	}
	t.engine.duration = m.histogram("gatehouse.engine.duration", "Time in which a limiter decides one request", durationBounds)
}

// histogram makes a histogram of durations.
func (m *maker) histogram(name, description string, bounds []float64) metric.Float64Histogram {
	h, err := m.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description),
		metric.WithExplicitBucketBoundaries(bounds...))
	m.err = errors.Join(m.err, err)
	return h
}

// Take asks a limiter for a decision and measures how long it takes. If the request is
// traced, the decision has a span of its own. To measure each decision of an engine,
// put its other methods beside it:
//
//	type measured struct {
//		*memory.Limiter
//		telemetry *telemetry.Telemetry
//	}
//
//	func (m measured) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
//		return m.telemetry.Take(ctx, m.Limiter, subject, plan, cost)
//	}
//
// Requests that are charged to several subjects (ratelimit.Caller.Also) call TakeAll of
// the engine: give measured that method too, with [Telemetry.TakeAll]. Otherwise they are
// not measured.
//
// In front of a shared engine, inside of package failover, it measures that engine;
// around failover, how long requests wait.
func (t *Telemetry) Take(ctx context.Context, l ratelimit.Limiter, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	if t == nil {
		return l.Take(ctx, subject, plan, cost)
	}
	ctx, m := begin(ctx)
	d, err := l.Take(ctx, subject, plan, cost)
	t.engine.end(ctx, m, d, err)
	return d, err
}

// TakeAll is Take for several charges, as [ratelimit.TakeAll] makes them. It measures
// one decision, the one that matters most ([engine.Deciding]).
func (t *Telemetry) TakeAll(ctx context.Context, l ratelimit.Limiter, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	if t == nil {
		return ratelimit.TakeAll(ctx, l, charges, decisions)
	}
	ctx, m := begin(ctx)
	var d ratelimit.Decision
	err := ratelimit.TakeAll(ctx, l, charges, decisions)
	if err == nil {
		d = decisions[engine.Deciding(decisions)]
	}
	t.engine.end(ctx, m, d, err)
	return err
}

// A measurement is of one decision, with a span of its own if the request is traced.
type measurement struct {
	begin time.Time
	span  trace.Span // nil: not traced
}

func begin(ctx context.Context) (context.Context, measurement) {
	m := measurement{begin: time.Now()}
	if parent := trace.SpanFromContext(ctx); parent.IsRecording() {
		ctx, m.span = parent.TracerProvider().Tracer(scope).Start(ctx, "gatehouse take")
	}
	return ctx, m
}

func (e *engineMeter) end(ctx context.Context, m measurement, d ratelimit.Decision, err error) {
	outcome := d.Outcome
	if err != nil || int(outcome) >= len(e.results) {
		outcome = 0
	}
	e.duration.Record(ctx, time.Since(m.begin).Seconds(), e.results[outcome]...)
	if m.span == nil {
		return
	}
	if err != nil {
		// The text of the error may have the subject.
		m.span.SetStatus(codes.Error, "")
		m.span.SetAttributes(resultKey.String(undecided), attribute.String("error.type", "_OTHER"))
	} else {
		m.span.SetAttributes(resultKey.String(d.Outcome.String()))
	}
	m.span.End()
}

// ObserveEngine reports the numbers of an engine: of a [memory.Limiter] its size, of a
// [failover.Limiter] the circuit and its counts, and of a [lease.Limiter] the shares and its
// counts. It returns an error for other engines. Call it for one engine of each type: of two, the
// series would be the same. In front of a shared engine, the [memory.Limiter] is the local one.
func (t *Telemetry) ObserveEngine(l ratelimit.Limiter) error {
	return t.observe("ObserveEngine: the engine", nilvalue.In(l), func(m *maker) {
		switch l := l.(type) {
		case *memory.Limiter:
			observeMemory(m, l)
		case *failover.Limiter:
			observeFailover(m, l)
		case *lease.Limiter:
			observeLease(m, l)
		default:
			m.err = fmt.Errorf("ObserveEngine: the engine must be one of package memory, failover or lease, got a %T", l)
		}
	})
}

func observeMemory(m *maker, l *memory.Limiter) {
	m.read(func() []int64 {
		s := l.Stats()
		return []int64{s.Subjects, s.Bound, int64(s.Evicted), int64(s.Refused)}
	}, with(),
		m.gauge("gatehouse.engine.subjects", "{subject}", "Subjects in memory"),
		m.gauge("gatehouse.engine.capacity", "{subject}", "The most subjects in memory"),
		m.counter("gatehouse.engine.evictions", "{subject}", "Subjects replaced at the capacity before their windows were over"),
		m.counter("gatehouse.engine.refusals", "{subject}", "Subjects and strikes that found no place at the capacity"))
}

func observeFailover(m *maker, l *failover.Limiter) {
	circuit := m.gauge("gatehouse.failover.circuit", "", "1 for the state of the circuit that is in force, 0 for the others")
	m.observe(func(_ context.Context, o metric.Observer) error {
		isOpen := int64(0)
		if l.Open() {
			isOpen = 1
		}
		o.ObserveInt64(circuit, 1-isOpen, with(stateKey.String("closed")))
		o.ObserveInt64(circuit, isOpen, with(stateKey.String("open")))
		return nil
	}, circuit)
	m.read(func() []int64 {
		s := l.Stats()
		return []int64{s.Pending, int64(s.Fallbacks), int64(s.Failures), int64(s.Timeouts), int64(s.Opened), int64(s.Lost)}
	}, with(),
		m.gauge("gatehouse.failover.pending", "{subject}", "Subjects whose usage is not charged to the primary yet"),
		m.counter("gatehouse.failover.fallbacks", "{request}", "Decisions that the primary did not make"),
		m.counter("gatehouse.failover.failures", "{call}", "Calls of the primary that failed"),
		m.counter("gatehouse.failover.timeouts", "{call}", "Calls of the primary that did not answer within the budget"),
		m.counter("gatehouse.failover.opened", "{change}", "Times the circuit opened"),
		m.counter("gatehouse.failover.lost", "{request}", "Times the journal had no room"))
}

func observeLease(m *maker, l *lease.Limiter) {
	m.read(func() []int64 {
		s := l.Stats()
		return []int64{s.Shares, s.Held, int64(s.Local), int64(s.Asked), int64(s.Returned), int64(s.Expired)}
	}, with(),
		m.gauge("gatehouse.lease.shares", "{subject}", "Subjects with a share"),
		m.gauge("gatehouse.lease.held", "{unit}", "Units of these shares that are not used yet"),
		m.counter("gatehouse.lease.local", "{request}", "Decisions without a question to the shared engine"),
		m.counter("gatehouse.lease.asked", "{call}", "Questions to the shared engine"),
		m.counter("gatehouse.lease.returned", "{unit}", "Units that were given back"),
		m.counter("gatehouse.lease.expired", "{unit}", "Units that were not used before their share ended"))
}

// redis measures calls of the script of package redislimit.
type redis struct {
	duration  metric.Float64Histogram
	batchSize metric.Int64Histogram
}

func (t *Telemetry) makeRedis(m *maker) {
	t.redis.duration = m.histogram("gatehouse.redis.duration", "Duration of one call of the script in Redis, successful or not", durationBounds[2:])
	var err error
	t.redis.batchSize, err = m.meter.Int64Histogram("gatehouse.redis.batch_size", metric.WithUnit("{request}"),
		metric.WithDescription("Requests that one call of the script decides"),
		metric.WithExplicitBucketBoundaries(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000))
	m.err = errors.Join(m.err, err)
}

// RedisBatch measures one call of the script of package redislimit, which decided some
// requests. It is for its Options:
//
//	Observe: func(requests int, took time.Duration, _ error) { t.RedisBatch(requests, took) },
func (t *Telemetry) RedisBatch(requests int, took time.Duration) {
	if t == nil {
		return
	}
	t.redis.duration.Record(context.Background(), took.Seconds())
	t.redis.batchSize.Record(context.Background(), int64(requests))
}
