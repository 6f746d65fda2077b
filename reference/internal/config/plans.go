package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// anonymous is the name of the plan of callers without a valid key. A key cannot
// have it.
const anonymous = "anonymous"

// uncharged is the name of the plan of requests that are not charged.
const uncharged = "uncharged"

// A Plan is a plan that a key can have. Either its quotas are fixed, or it is custom
// and each key has its own, or it is suspended or unlimited and has none.
type Plan struct {
	name    string
	plan    *ratelimit.Plan   // nil if custom
	penalty ratelimit.Penalty // used if custom
}

// Name returns the name.
func (p Plan) Name() string { return p.name }

// Custom reports whether each key has its own quotas.
func (p Plan) Custom() bool { return p.plan == nil }

// Fixed returns the plan of all its keys, or nil if it is custom.
func (p Plan) Fixed() *ratelimit.Plan { return p.plan }

// Word returns the word that stands for the quotas in the settings: custom, suspended or
// unlimited; empty if the plan has quotas.
func (p Plan) Word() string {
	if p.Custom() {
		return "custom"
	}
	switch d, _ := engine.Decide("any", p.plan, 1); d.Outcome {
	case ratelimit.Suspended:
		return "suspended"
	case ratelimit.Allowed:
		return "unlimited"
	}
	return ""
}

// Plans are the plans that a key can have, in the order of the file.
type Plans []Plan

// Names returns the names of the plans.
func (ps Plans) Names() []string {
	names := make([]string, len(ps))
	for i, p := range ps {
		names[i] = p.name
	}
	return names
}

// setDefaultPlans sets the default plans with the penalty of c.
func (c *Config) setDefaultPlans() {
	fixed := func(name string, quotas ...ratelimit.Quota) Plan {
		return Plan{name: name, plan: ratelimit.MustPlan(name, c.Penalty, quotas...)}
	}
	c.Plans = Plans{
		fixed("free", ratelimit.PerMinute(60), ratelimit.PerDay(1000)),
		fixed("pro", ratelimit.PerMinute(300), ratelimit.PerDay(10_000)),
		fixed("business", ratelimit.PerMinute(1000), ratelimit.PerDay(100_000)),
		{name: "enterprise", penalty: c.Penalty},
	}
	c.Anonymous = ratelimit.MustPlan(anonymous, c.Penalty, ratelimit.PerMinute(60), ratelimit.PerDay(1000))
	c.Uncharged = ratelimit.MustPlan(uncharged, ratelimit.Penalty{}, ratelimit.PerMinute(600))
}

// Of returns the plan of a key that was issued with the named plan and these
// quotas, such as "5000/minute". A custom plan requires quotas, every other plan
// refuses them. The errors tell an operator what to do.
func (ps Plans) Of(name string, quotas []string) (*ratelimit.Plan, error) {
	for _, p := range ps {
		if p.name == name {
			return p.of(quotas)
		}
	}
	return nil, fmt.Errorf("unknown plan %q; the plans are %s", name, strings.Join(ps.Names(), ", "))
}

func (p Plan) of(quotas []string) (*ratelimit.Plan, error) {
	if !p.Custom() {
		if len(quotas) > 0 {
			return nil, fmt.Errorf("plan %s has fixed quotas; remove the quotas of the key", p.name)
		}
		return p.plan, nil
	}
	if len(quotas) == 0 {
		return nil, fmt.Errorf("plan %s is custom; give the key quotas such as 5000/minute", p.name)
	}
	parsed := make([]ratelimit.Quota, len(quotas))
	for i, text := range quotas {
		q, err := ratelimit.ParseQuota(text)
		if err != nil {
			return nil, trimPrefixes(err, "ratelimit: ")
		}
		parsed[i] = q
	}
	plan, err := ratelimit.NewPlan(p.name, p.penalty, parsed...)
	if err != nil {
		return nil, trimPrefixes(err, "ratelimit: ")
	}
	return plan, nil
}

// trimPrefixes removes prefixes of an error that mean nothing to the author of a file.
func trimPrefixes(err error, prefixes ...string) error {
	text := err.Error()
	for _, prefix := range prefixes {
		text = strings.TrimPrefix(text, prefix)
	}
	return errors.New(text)
}
