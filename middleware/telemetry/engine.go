package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
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

func (t *Telemetry) createEngine() (err error) {
	for outcome := range t.engine.results {
		t.engine.results[outcome] = []metric.RecordOption{with(resultKey.String(ratelimit.Outcome(outcome).String()))}
	}
	t.engine.duration, err = t.meter.Float64Histogram("gatehouse.engine.duration", metric.WithUnit("s"),
		metric.WithDescription("Time in which a limiter decides one request"),
		metric.WithExplicitBucketBoundaries(durationBounds...))
	return err
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
func (t *Telemetry) Take(ctx context.Context, l ratelimit.Limiter, subject string, plan *ratelimit.Plan, cost int64) (d ratelimit.Decision, err error) {
	if t == nil {
		return l.Take(ctx, subject, plan, cost)
	}
	if parent := trace.SpanFromContext(ctx); parent.IsRecording() {
		var span trace.Span
		ctx, span = parent.TracerProvider().Tracer(scope).Start(ctx, "gatehouse take")
		defer func() { endTake(span, d, err) }()
	}
	begin := time.Now()
	d, err = l.Take(ctx, subject, plan, cost)
	t.engine.record(ctx, begin, d, err)
	return d, err
}

// TakeAll is Take for several charges, as [ratelimit.TakeAll] makes them. It measures
// one decision, the one that matters most ([engine.Deciding]).
func (t *Telemetry) TakeAll(ctx context.Context, l ratelimit.Limiter, charges []ratelimit.Charge, decisions []ratelimit.Decision) (err error) {
	if t == nil {
		return ratelimit.TakeAll(ctx, l, charges, decisions)
	}
	var d ratelimit.Decision
	if parent := trace.SpanFromContext(ctx); parent.IsRecording() {
		var span trace.Span
		ctx, span = parent.TracerProvider().Tracer(scope).Start(ctx, "gatehouse take")
		defer func() { endTake(span, d, err) }()
	}
	begin := time.Now()
	if err = ratelimit.TakeAll(ctx, l, charges, decisions); err == nil {
		d = decisions[engine.Deciding(decisions)]
	}
	t.engine.record(ctx, begin, d, err)
	return err
}

func (e *engineMeter) record(ctx context.Context, begin time.Time, d ratelimit.Decision, err error) {
	outcome := d.Outcome
	if err != nil || int(outcome) >= len(e.results) {
		outcome = 0
	}
	e.duration.Record(ctx, time.Since(begin).Seconds(), e.results[outcome]...)
}

func endTake(span trace.Span, d ratelimit.Decision, err error) {
	if err != nil {
		// The text of the error may have the subject.
		span.SetStatus(codes.Error, "")
		span.SetAttributes(resultKey.String(undecided), attribute.String("error.type", "_OTHER"))
	} else {
		span.SetAttributes(resultKey.String(d.Outcome.String()))
	}
	span.End()
}
