package telemetry

import (
	"context"
	"errors"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// The attributes.
const (
	planKey      = attribute.Key("gatehouse.plan")
	resultKey    = attribute.Key("gatehouse.result")
	windowKey    = attribute.Key("gatehouse.window")
	operationKey = attribute.Key("gatehouse.operation")
	stateKey     = attribute.Key("gatehouse.state")
	keyIDKey     = attribute.Key("gatehouse.key.id") // on spans only
)

const undecided = "undecided"

// decisions counts what the limiter decided.
type decisions struct {
	plans                                plans
	requests, nearLimit, strikes, banned metric.Int64ObservableCounter
}

func (t *Telemetry) createDecisions() error {
	d := &t.decisions
	var errs [4]error
	d.requests, errs[0] = t.counter("gatehouse.rate_limiting.requests", "{request}", "Requests that a limiter was asked about")
	d.nearLimit, errs[1] = t.counter("gatehouse.rate_limiting.near_limit", "{request}", "Allowed requests that left at most 10 % of a quota")
	d.strikes, errs[2] = t.counter("gatehouse.rate_limiting.strikes", "{strike}", "Denied requests that count towards a ban")
	d.banned, errs[3] = t.counter("gatehouse.bans.started", "{ban}", "Bans that began because of too many denied requests")
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	return t.register(d.observe, d.requests, d.nearLimit, d.strikes, d.banned)
}

func (d *decisions) observe(_ context.Context, o metric.Observer) error {
	for _, plan := range valueOf(&d.plans.byName) {
		plan.undecided.observe(o, d.requests)
		plan.strikes.observe(o, d.strikes)
		plan.banned.observe(o, d.banned)
		for _, c := range []*count{&plan.alone.allowed, &plan.alone.suspended} {
			if c.n.Load() > 0 {
				c.observe(o, d.requests)
			}
		}
		for _, w := range valueOf(&plan.windows) {
			w.allowed.observe(o, d.requests)
			w.limited.observe(o, d.requests)
			w.banned.observe(o, d.requests)
			w.nearLimit.observe(o, d.nearLimit)
		}
	}
	return nil
}

// Decision counts a decision, and puts its outcome, the plan and the ID of the API key
// on the span of the request. It is for [limit.Options] Observe. In shadow mode it
// counts the decisions, although no request is refused.
func (t *Telemetry) Decision(r *http.Request, c ratelimit.Caller, d ratelimit.Decision, err error) {
	t.CallDecision(r.Context(), "", c, d, err)
}

// CallDecision is [Telemetry.Decision] for calls of gRPC and of Connect. It is for Observe
// in the options of gatehousegrpc and gatehouseconnect. The method is not recorded.
func (t *Telemetry) CallDecision(ctx context.Context, _ string, c ratelimit.Caller, d ratelimit.Decision, err error) {
	if t == nil {
		return
	}
	name := ""
	if c.Plan != nil {
		name = c.Plan.Name()
	}
	result := undecided
	plan := t.decisions.plans.plan(name)
	if err != nil || d.Plan == nil || d.Outcome < ratelimit.Allowed || d.Outcome > ratelimit.Suspended {
		plan.undecided.n.Add(1)
	} else {
		result = d.Outcome.String()
		t.decisions.count(plan, &d)
		if d.Struck {
			plan.strikes.n.Add(1)
			if d.Outcome == ratelimit.Banned {
				plan.banned.n.Add(1)
			}
		}
	}
	setDecision(ctx, plan.name, result)
}

func (d *decisions) count(plan *planSeries, decision *ratelimit.Decision) {
	switch {
	case decision.Outcome == ratelimit.Suspended:
		plan.alone.suspended.n.Add(1)
		return
	case engine.Of(decision.Plan).Len() == 0:
		plan.alone.allowed.n.Add(1)
		return
	}
	w := d.plans.window(plan, engine.Of(decision.Plan).Kind(decision.Applicable))
	switch decision.Outcome {
	case ratelimit.Allowed:
		w.allowed.n.Add(1)
		if decision.Remaining() <= decision.Limit()/10 {
			w.nearLimit.n.Add(1)
		}
	case ratelimit.Limited:
		w.limited.n.Add(1)
	case ratelimit.Banned:
		w.banned.n.Add(1)
	}
}

// setDecision sets attributes of the span of a request or call.
func setDecision(ctx context.Context, plan, result string) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(planKey.String(plan), resultKey.String(result))
	if p, ok := apikey.FromContext(ctx); ok {
		span.SetAttributes(keyIDKey.String(p.KeyID))
	}
}
