package telemetry

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
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

func (t *Telemetry) makeDecisions(m *maker) {
	d := &t.decisions
	d.requests = m.counter("gatehouse.rate_limiting.requests", "{request}", "Requests that a limiter was asked about")
	d.nearLimit = m.counter("gatehouse.rate_limiting.near_limit", "{request}", "Allowed requests that left at most 10 % of a quota")
	d.strikes = m.counter("gatehouse.rate_limiting.strikes", "{strike}", "Denied requests that count towards a ban")
	d.banned = m.counter("gatehouse.bans.started", "{ban}", "Bans that began because of too many denied requests")
	m.observe(d.observe, d.requests, d.nearLimit, d.strikes, d.banned)
}

func (d *decisions) observe(_ context.Context, o metric.Observer) error {
	for _, plan := range valueOf(&d.plans.byName) {
		plan.undecided.observe(o, d.requests)
		plan.strikes.observe(o, d.strikes)
		plan.banned.observe(o, d.banned)
		for _, c := range []*count{&plan.unlimited, &plan.suspended} {
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
// on the span of the request or call. It is for Observe in the options of packages limit,
// gatehousegrpc and gatehouseconnect. In shadow mode it counts the decisions, although no
// request is refused.
//
// A request with several charges counts once, under the plan of its caller, also if the
// applicable quota belongs to another charge. The counts near_limit, strikes and bans have the
// plan whose quota or penalty it was.
func (t *Telemetry) Decision(r *http.Request, c ratelimit.Caller, d ratelimit.Decision, err error) {
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
		own := t.decisions.plans.plan(d.Plan.Name()) // of the caller, or of a further charge
		t.decisions.count(plan, own, &d)
		if d.Struck {
			own.strikes.n.Add(1)
			if d.Outcome == ratelimit.Banned {
				own.banned.n.Add(1)
			}
		}
	}
	setDecision(r.Context(), plan.name, result)
}

// Plan makes the counters of a plan exist, with zero, before the first request under it.
// Otherwise they begin with that request, and rate functions of backends do not see the bans
// that start before they are read for the first time. Repeated calls do nothing.
func (t *Telemetry) Plan(name string) {
	if t != nil {
		t.decisions.plans.plan(name)
	}
}

// count counts a request for the plan of its caller. A quota that is nearly used up is one of
// the plan that the decision is about.
func (d *decisions) count(plan, own *planSeries, decision *ratelimit.Decision) {
	switch {
	case decision.Outcome == ratelimit.Suspended:
		plan.suspended.n.Add(1)
		return
	case engine.Of(decision.Plan).Len() == 0:
		plan.unlimited.n.Add(1)
		return
	}
	window := engine.Of(decision.Plan).Kind(decision.Applicable)
	w := d.plans.window(plan, window)
	switch decision.Outcome {
	case ratelimit.Allowed:
		w.allowed.n.Add(1)
		if decision.Remaining() <= decision.Limit()/10 {
			d.plans.window(own, window).nearLimit.n.Add(1)
		}
	case ratelimit.Limited:
		w.limited.n.Add(1)
	case ratelimit.Banned:
		w.banned.n.Add(1)
	}
}

// setDecision sets attributes of the span of a request.
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

// A planSeries holds the series with the name of one plan.
type planSeries struct {
	name                       string
	undecided, strikes, banned count
	unlimited, suspended       count // of a plan without quotas; observed once something has happened to it

	// windows has a series for each window. It is replaced, never changed.
	windows atomic.Pointer[map[time.Duration]*windowSeries]
}

// A windowSeries holds the series with the name of one plan and one window.
type windowSeries struct {
	allowed, limited, banned, nearLimit count
}

// otherWindow is the key of the series of all further windows.
const otherWindow time.Duration = 0

// plans holds the series of all plans, up to the bounds of this package. Look-ups take
// no lock; the first request of a plan and a window does.
type plans struct {
	byName atomic.Pointer[map[string]*planSeries] // replaced, never changed

	mu    sync.Mutex
	pairs int // of a plan and a window
}

// plan returns the series of a plan.
func (p *plans) plan(name string) *planSeries {
	if s, ok := valueOf(&p.byName)[name]; ok {
		return s
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	known := valueOf(&p.byName)
	if len(known) >= maxPlans {
		name = other
	}
	if s, ok := known[name]; ok {
		return s
	}
	s := &planSeries{name: name}
	s.undecided.attrs = with(planKey.String(name), windowKey.String(""), resultKey.String("undecided"))
	for result, c := range map[string]*count{"allowed": &s.unlimited, "suspended": &s.suspended} {
		c.attrs = with(planKey.String(name), windowKey.String(""), resultKey.String(result))
	}
	s.strikes.attrs = with(planKey.String(name))
	s.banned.attrs = s.strikes.attrs
	replace(&p.byName, name, s)
	return s
}

// window returns the series of a window of a plan.
func (p *plans) window(plan *planSeries, window time.Duration) *windowSeries {
	if s, ok := valueOf(&plan.windows)[window]; ok {
		return s
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	name := other
	if p.pairs < maxPairs {
		name = fixedwindow.Kind(window).Name()
	} else {
		window = otherWindow
	}
	if s, ok := valueOf(&plan.windows)[window]; ok {
		return s
	}
	if window != otherWindow {
		p.pairs++
	}
	s := new(windowSeries)
	for result, c := range map[string]*count{"allowed": &s.allowed, "limited": &s.limited, "banned": &s.banned} {
		c.attrs = with(planKey.String(plan.name), windowKey.String(name), resultKey.String(result))
	}
	s.nearLimit.attrs = with(planKey.String(plan.name), windowKey.String(name))
	replace(&plan.windows, window, s)
	return s
}

// valueOf returns the map that p points to, or nil.
func valueOf[K comparable, V any](p *atomic.Pointer[map[K]V]) map[K]V {
	if m := p.Load(); m != nil {
		return *m
	}
	return nil
}

// replace stores a copy of the map with one more entry.
func replace[K comparable, V any](p *atomic.Pointer[map[K]V], k K, v V) {
	m := maps.Clone(valueOf(p))
	if m == nil {
		m = make(map[K]V)
	}
	m[k] = v
	p.Store(&m)
}

// Bounds of attribute values. The names of plans and the windows of quotas come from
// settings and stored keys, so there may be more of them than a backend should hold.
// With maxPairs no counter has more than 2000 series, where an SDK of OpenTelemetry
// begins to merge them.
const (
	maxPlans      = 100
	maxPairs      = maxPlans * engine.MaxQuotas // of a plan and a window
	maxOperations = 100

	other = "other" // stands for all further values
)
