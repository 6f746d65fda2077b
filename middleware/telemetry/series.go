package telemetry

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/internal/plan"
	"github.com/animalstore/gatehouse/ratelimit"
)

// A planSeries holds the series with the name of one plan.
type planSeries struct {
	name                       string
	undecided, strikes, banned count
	alone                      aloneSeries

	// windows has a series for each window. It is replaced, never changed.
	windows atomic.Pointer[map[time.Duration]*windowSeries]
}

// A windowSeries holds the series with the name of one plan and one window.
type windowSeries struct {
	allowed, limited, banned, nearLimit count
}

// An aloneSeries holds the series of a plan without quotas, which have no window. They
// are observed once something has happened to them, since few plans are of that kind.
type aloneSeries struct {
	allowed, suspended count
}

// otherWindow is the key of the series of all further windows.
const otherWindow time.Duration = 0

// plans holds the series of all plans, up to the bounds of this package. Look-ups take
// no lock; the first request of a plan and a window does.
type plans struct {
	byName atomic.Pointer[map[string]*planSeries] // replaced, never changed

	mu      sync.Mutex
	windows map[time.Duration]struct{}
	pairs   int
}

// plan returns the series of a plan.
func (p *plans) plan(name string) *planSeries {
	if known := p.byName.Load(); known != nil {
		if s, ok := (*known)[name]; ok {
			return s
		}
	}
	return p.addPlan(name)
}

func (p *plans) addPlan(name string) *planSeries {
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
	for result, c := range map[string]*count{"allowed": &s.alone.allowed, "suspended": &s.alone.suspended} {
		c.attrs = with(planKey.String(name), windowKey.String(""), resultKey.String(result))
	}
	s.strikes.attrs = with(planKey.String(name))
	s.banned.attrs = s.strikes.attrs
	replace(&p.byName, name, s)
	return s
}

// window returns the series of a window of a plan.
func (p *plans) window(plan *planSeries, window time.Duration) *windowSeries {
	if known := plan.windows.Load(); known != nil {
		if s, ok := (*known)[window]; ok {
			return s
		}
	}
	return p.addWindow(plan, window)
}

func (p *plans) addWindow(plan *planSeries, window time.Duration) *windowSeries {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := other
	if p.hasRoomFor(window) {
		name = windowName(window)
	} else {
		window = otherWindow
	}
	if s, ok := valueOf(&plan.windows)[window]; ok {
		return s
	}
	if window != otherWindow {
		p.windows[window] = struct{}{}
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

// hasRoomFor reports whether a plan may have a series of its own for a window. The
// caller holds p.mu.
func (p *plans) hasRoomFor(window time.Duration) bool {
	if p.windows == nil {
		p.windows = make(map[time.Duration]struct{})
	}
	_, known := p.windows[window]
	return p.pairs < maxPairs && (known || len(p.windows) < maxWindows)
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
	old := valueOf(p)
	m := make(map[K]V, len(old)+1)
	for k, v := range old {
		m[k] = v
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
	maxWindows    = 50
	maxPairs      = maxPlans * plan.MaxQuotas // of a plan and a window
	maxOperations = 100

	other = "other" // stands for all further values
)

// windowName returns the word for a window, or its duration in seconds, as in the text
// form of a quota. The length of a smooth quota has a minus sign.
func windowName(window time.Duration) string {
	if window == ratelimit.PerDay(1).In(time.UTC).Window {
		return "local-day" // beside the day of a fixed length
	}
	if window < 0 {
		return "smooth-" + windowName(-window)
	}
	_, name, _ := strings.Cut(ratelimit.Quota{Limit: 1, Window: window}.String(), "/")
	return name
}
