package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
)

// failing is an engine that fails for one subject, or to refund.
type failing struct {
	enginetest.Model
	subject string
	refunds bool
}

var errBroken = errors.New("broken")

func (f failing) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	if subject == f.subject {
		return ratelimit.Decision{}, errBroken
	}
	return f.Model.Take(ctx, subject, plan, cost)
}

func (f failing) Adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) error {
	if !f.refunds {
		return errBroken
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return f.Model.Adjust(ctx, subject, d, units, id)
}

// If the engine fails for one charge, those before it are given back, also if that is
// because the context has ended.
func TestTakeAllGivesBackAfterErrors(t *testing.T) { synctest.Test(t, testGivesBackAfterErrors) }

func testGivesBackAfterErrors(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	m := newModel()
	l := failing{m, "everyone", true}
	decisions := make([]ratelimit.Decision, 3)
	err := engine.TakeInOrder(ctx, takeAndAdjust{l, l}, charges(1), decisions)
	if !errors.Is(err, errBroken) {
		t.Errorf("got error %v, want that of the engine", err)
	}
	if diff := cmp.Diff(make([]outcome, 3), outcomes(decisions)); diff != "" {
		t.Errorf("decisions beside an error (-want +got):\n%s", diff)
	}
	synctest.Wait()
	if d, _ := m.Peek(ctx, "user:ann", user); d.Remaining() != 2 {
		t.Errorf("the first subject has %d left, want its 2 units back", d.Remaining())
	}
}

// hanging is an engine that does not answer to refunds.
type hanging struct{ enginetest.Model }

func (h hanging) Adjust(ctx context.Context, _ string, _ *ratelimit.Decision, _ int64, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

// TakeAll returns when its context ends, although units are still to be given back.
func TestTakeAllDoesNotWaitForRefunds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel()
		_, err := m.Take(t.Context(), "company:7", company, 3)
		must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		defer time.Sleep(time.Second) // until the refund gives up
		began := time.Now()
		takeInOrder(ctx, t, takeAndAdjust{m, hanging{m}}, charges(1)[:2], outcome{ratelimit.Allowed, 1, "user"}, outcome{ratelimit.Limited, 0, "company"})
		if waited := time.Since(began); waited > 10*time.Millisecond {
			t.Errorf("TakeAll waited for %v, want no longer than its context", waited)
		}
	})
}

// A refused group leaves a smooth quota as full as it was.
func TestTakeAllGivesBackToSmoothQuotas(t *testing.T) {
	ctx, at := context.Background(), time.Unix(now, 0)
	m := enginetest.NewModel(func() time.Time { return at })
	smooth := ratelimit.MustPlan("smooth", ratelimit.Penalty{}, ratelimit.PerMinute(1000).Smooth(1000))
	use := []ratelimit.Charge{{Subject: "a", Plan: smooth, Cost: 2}, {Subject: "b", Plan: company, Cost: 3}}
	_, err := m.Take(ctx, "b", company, 3)
	must(t, err)
	for range 600 {
		decisions := takeInOrder(ctx, t, takeAndAdjust{m, m}, use, outcome{ratelimit.Skipped, 1000, "smooth"}, outcome{ratelimit.Limited, 0, "company"})
		left, err := m.Peek(ctx, "a", smooth)
		if d := decisions[0]; err != nil || d.States != left.States || d.Receipt.Rounded != left.Receipt.Rounded {
			t.Fatalf("%v and %v are left, with error %v, want what a look at it finds: %v and %v", d.States[0], d.Receipt.Rounded[0], err, left.States[0], left.Receipt.Rounded[0])
		}
		at = at.Add(time.Microsecond)
	}
}

// A decision about units that could not be given back is still Allowed.
func TestTakeAllTellsOfChargesThatStay(t *testing.T) {
	ctx, m := context.Background(), newModel()
	_, err := m.Take(ctx, "company:7", company, 3)
	must(t, err)
	l := failing{m, "", false}
	takeInOrder(ctx, t, takeAndAdjust{l, l}, charges(1)[:2], outcome{ratelimit.Allowed, 1, "user"}, outcome{ratelimit.Limited, 0, "company"})
}
