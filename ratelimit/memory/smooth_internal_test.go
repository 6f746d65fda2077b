package memory

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// Beside fixed windows and windows of another plan, requests under a smooth quota are
// admitted without the lock, and so are those of another plan while a bucket is in use.
// Denials within the grace are decided as under the lock.
func TestSmoothWithoutTheLock(t *testing.T) {
	patient := ratelimit.DefaultPenalty()
	patient.Grace = time.Hour
	plan := func(quotas ...ratelimit.Quota) *ratelimit.Plan { return ratelimit.MustPlan("p", patient, quotas...) }
	// At noon, both quotas refuse until a minute later.
	mixed := plan(ratelimit.PerMinute(3), ratelimit.PerHour(60).Smooth(3))
	fixed, later := plan(ratelimit.PerDay(1000)), plan(ratelimit.Quota{Limit: 9, Window: ratelimit.MaxWindow})
	l := internalLimiter(t, Options{Now: noonSharp})
	internalTake(t, l, "a", mixed, 1)
	internalTake(t, l, "a", fixed, 1)

	h := l.key.sum("a")
	table := l.tables[h>>l.shift].Load()
	at, _ := table.find(h)
	slot := table.slot(at)
	request := func(plan *ratelimit.Plan) ratelimit.Decision {
		return ratelimit.Decision{Plan: plan, Cost: 1, Time: noonSharp().UnixNano()}
	}
	d := request(mixed)
	if !l.admitSmooth(slot, h, &d, nil) || d.States[0].Remaining != 0 || d.States[1].Remaining != 1 {
		t.Errorf("under the mixed plan: %+v, want admitted without the lock", d)
	}
	if d = request(fixed); !l.admitSmooth(slot, h, &d, nil) || d.States[0].Remaining != 997 {
		t.Errorf("under the fixed plan: %+v, want admitted without the lock", d)
	}
	internalTake(t, l, "b", mixed, 3)
	locked := internalDenied(t, l, "b", mixed)
	if locked.Applicable != 0 || locked.RetryAfter != time.Minute {
		t.Fatalf("with both quotas used up: %+v, want the minute to refuse, until 12:01", locked)
	}
	h = l.key.sum("b")
	table = l.tables[h>>l.shift].Load()
	at, _ = table.find(h)
	if d = request(mixed); l.look(table, at, table.slot(at), h, &d) != refused || d != locked {
		t.Errorf("without the lock:\n%+v, want\n%+v", d, locked)
	}
	// The record must outlast a window that began since.
	internalTake(t, l, "b", later, 1)
	table = l.tables[h>>l.shift].Load()
	at, _ = table.find(h)
	if d = request(mixed); l.look(table, at, table.slot(at), h, &d) != unclear {
		t.Errorf("with a window that ends after the record: %+v, want it left to the lock", d)
	}
}

func internalDenied(t *testing.T, l *Limiter, subject string, plan *ratelimit.Plan) ratelimit.Decision {
	t.Helper()
	d, err := l.Take(t.Context(), subject, plan, 1)
	if err != nil || d.Outcome != ratelimit.Limited {
		t.Fatalf("%+v, %v, want limited", d, err)
	}
	return d
}
