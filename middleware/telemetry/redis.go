package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/metric"
)

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
