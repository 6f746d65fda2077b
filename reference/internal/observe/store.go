package observe

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

const (
	operationKey = attribute.Key("petstore.operation")
	errorTypeKey = attribute.Key("error.type")
)

// running is a call that runs.
type running struct {
	*Observer
	ctx       context.Context
	operation string
	begin     time.Time
	span      trace.Span // nil: the request is not traced
}

// begin begins a call, which [running.end] ends. The call gets the context that begin
// returns.
func (o *Observer) begin(ctx context.Context, operation string) (running, context.Context) {
	r := running{Observer: o, ctx: ctx, operation: operation}
	if parent := trace.SpanFromContext(ctx); parent.IsRecording() {
		r.ctx, r.span = parent.TracerProvider().Tracer(scope).Start(ctx, "store "+operation,
			trace.WithAttributes(operationKey.String(operation)))
	}
	r.begin = time.Now()
	return r, r.ctx
}

// end ends a call with the error that err points to.
func (r *running) end(err *error) {
	took, failure := time.Since(r.begin).Seconds(), errorType(*err)
	attrs := []attribute.KeyValue{operationKey.String(r.operation)}
	if failure != "" {
		attrs = append(attrs, errorTypeKey.String(failure))
	}
	r.callDuration.Record(r.ctx, took, metric.WithAttributeSet(attribute.NewSet(attrs...)))
	if r.span == nil {
		return
	}
	if failure != "" {
		r.span.SetAttributes(errorTypeKey.String(failure))
		r.span.SetStatus(codes.Error, "") // the text of the error may have a name
	}
	r.span.End()
}

// errorType returns the error.type of a call, or "" if the call was answered. An error such
// as store.ErrNotFound is an answer.
func errorType(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, store.ErrUnavailable):
		return "unavailable"
	}
	for _, answer := range []error{store.ErrNotFound, store.ErrInvalid, store.ErrExists, store.ErrInactive, store.ErrMismatch} {
		if errors.Is(err, answer) {
			return ""
		}
	}
	return "_OTHER"
}

// Store returns s, except that the calls that requests wait for, and Ping, are measured, and
// have spans if the request is traced. PetsVersion of a [store.PetsVersioner] is not measured:
// it takes less time than a measurement.
func (o *Observer) Store(s store.Store) store.Store {
	if v, ok := s.(store.PetsVersioner); ok {
		return struct {
			measured
			store.PetsVersioner
		}{measured{s, o}, v}
	}
	return measured{s, o}
}

type measured struct {
	store.Store
	o *Observer
}

func (m measured) CreatePet(ctx context.Context, p store.NewPet) (_ store.Pet, err error) {
	c, ctx := m.o.begin(ctx, "CreatePet")
	defer c.end(&err)
	return m.Store.CreatePet(ctx, p)
}

func (m measured) CreatePetOnce(ctx context.Context, p store.NewPet, k store.IdempotencyKey) (_ store.Pet, replayed bool, err error) {
	c, ctx := m.o.begin(ctx, "CreatePetOnce")
	defer c.end(&err)
	return m.Store.CreatePetOnce(ctx, p, k)
}

func (m measured) Pet(ctx context.Context, id int64) (_ store.Pet, err error) {
	c, ctx := m.o.begin(ctx, "Pet")
	defer c.end(&err)
	return m.Store.Pet(ctx, id)
}

func (m measured) ListPets(ctx context.Context, q store.ListQuery) (_ []store.Pet, more bool, err error) {
	c, ctx := m.o.begin(ctx, "ListPets")
	defer c.end(&err)
	return m.Store.ListPets(ctx, q)
}

func (m measured) KeyByDigest(ctx context.Context, d store.Digest) (_ store.Key, err error) {
	c, ctx := m.o.begin(ctx, "KeyByDigest")
	defer c.end(&err)
	return m.Store.KeyByDigest(ctx, d)
}

func (m measured) Ping(ctx context.Context) (err error) {
	c, ctx := m.o.begin(ctx, "Ping")
	defer c.end(&err)
	return m.Store.Ping(ctx)
}
