package observe_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// calls returns the number of measured calls by operation and type of error.
func (s memorySDK) calls(t *testing.T) map[string]int {
	t.Helper()
	calls := make(map[string]int)
	m, ok := s.metrics(t)["petstore.store.duration"]
	if !ok {
		return calls
	}
	for _, p := range m.Data.(metricdata.Histogram[float64]).DataPoints {
		operation, _ := p.Attributes.Value("petstore.operation")
		failure, _ := p.Attributes.Value("error.type")
		calls[operation.AsString()+" "+failure.AsString()] = int(p.Count)
	}
	return calls
}

// What requests wait for is measured.
func TestMeasuredCalls(t *testing.T) {
	sdk := newSDK(t)
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "pets.db"), sqlite.Options{})
	must(t, err)
	defer db.Close()
	measured, ctx := sdk.Store(db), t.Context()
	_, err = measured.CreatePet(ctx, store.NewPet{Name: "Rex"})
	must(t, err)
	_, _, err = measured.CreatePetOnce(ctx, store.NewPet{Name: "Rex"}, store.IdempotencyKey{Owner: "ann", Key: "a", At: time.Now()})
	must(t, err)
	_, err = measured.Pet(ctx, 1)
	must(t, err)
	_, _, err = measured.ListPets(ctx, store.ListQuery{Limit: 1})
	must(t, err)
	_, _ = measured.KeyByDigest(ctx, store.Digest{}) // not found, which is an answer
	must(t, measured.Ping(ctx))
	want := map[string]int{"CreatePet ": 1, "CreatePetOnce ": 1, "Pet ": 1, "ListPets ": 1, "KeyByDigest ": 1, "Ping ": 1}
	if diff := cmp.Diff(want, sdk.calls(t)); diff != "" {
		t.Errorf("measured calls, all answered (-want +got):\n%s", diff)
	}
	v, ok := measured.(store.PetsVersioner)
	if !ok {
		t.Fatal("the measured store has no PetsVersion")
	}
	if got, ok := v.PetsVersion(); !ok || got == 0 {
		t.Errorf("PetsVersion = %d, %t, want that of the store", got, ok)
	}
	if _, ok := sdk.Store(struct{ store.Store }{db}).(store.PetsVersioner); ok {
		t.Error("the measured store has a PetsVersion that its store does not have")
	}
}

// stub is a store that answers with an error.
type stub struct {
	store.Store
	err error
}

func (s stub) Ping(context.Context) error { return s.err }

func TestFailedCallsHaveAType(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{fmt.Errorf("pet 7: %w", store.ErrNotFound), ""}, // an answer
		{store.ErrInvalid, ""},
		{store.ErrExists, ""},
		{store.ErrInactive, ""},
		{store.ErrMismatch, ""},
		{fmt.Errorf("%w: the disk is full", store.ErrUnavailable), "unavailable"},
		{fmt.Errorf("list pets: %w", context.Canceled), "canceled"},
		{fmt.Errorf("%w: %w", store.ErrUnavailable, context.DeadlineExceeded), "timeout"},
		{errors.New("broken"), "_OTHER"},
	} {
		sdk := newSDK(t)
		ctx, parent := sdk.Tracer().Start(t.Context(), "request")
		if got := sdk.Store(stub{err: test.err}).Ping(ctx); got != test.err {
			t.Errorf("Ping returned %v, want the error of the store, %v", got, test.err)
		}
		parent.End()
		if want := map[string]int{"Ping " + test.want: 1}; !cmp.Equal(sdk.calls(t), want) {
			t.Errorf("%v: measured %v, want %v", test.err, sdk.calls(t), want)
		}
		span := sdk.spans.GetSpans()[0]
		if failed := span.Status.Code == codes.Error; failed != (test.want != "") || attributes(span)["error.type"] != test.want {
			t.Errorf("%v: the span has status %v and error.type %q, want %q", test.err, span.Status, attributes(span)["error.type"], test.want)
		}
		if span.Status.Description != "" {
			t.Errorf("the span has the text %q: it may name an owner", span.Status.Description)
		}
	}
}
