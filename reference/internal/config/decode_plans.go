package config

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// penalty sets the penalty. What the file leaves out stays as it is by default.
func (d *decoder) penalty(n *node, setting string) {
	const example = "a group such as {strikes: 10, grace: 2s, decay: 10s, ban: 1m, growth: 2, max: 24h, forgive: 24h}"
	if !d.is(n, setting, group, example) {
		return
	}
	p := d.c.Penalty
	before := len(d.mistakes)
	whole := func(v *int) func(*node, string) {
		return func(n *node, setting string) {
			if w, ok := d.whole(n, setting); ok {
				*v = w
			}
		}
	}
	duration := func(v *time.Duration) func(*node, string) {
		return func(n *node, setting string) {
			if w, ok := d.duration(n, setting); ok {
				*v = w
			}
		}
	}
	d.group(n, setting, fields{
		"strikes": whole(&p.Strikes),
		"grace":   duration(&p.Grace),
		"decay":   d.decay(&p.Decay),
		"ban":     duration(&p.Ban),
		"growth":  whole(&p.Growth),
		"max":     duration(&p.Max),
		"forgive": duration(&p.Forgive),
	})
	if len(d.mistakes) > before {
		return
	}
	if p.Strikes == 0 {
		p = ratelimit.Penalty{} // there are no bans, so the rest does not matter
	}
	// A plan is what judges a penalty.
	if _, err := ratelimit.NewPlan("", p, ratelimit.PerDay(1)); err != nil {
		what := unprefixed(err, `ratelimit: plan "": penalty: `).Error()
		at, path := d.penaltyMember(n, setting, what)
		d.add(at, path, "%s", what)
		return
	}
	d.c.Penalty = p
}

// decay reads how long it takes to forget a strike. In a Penalty, zero means
// the default; in a file it is a mistake.
func (d *decoder) decay(v *time.Duration) func(*node, string) {
	return func(n *node, setting string) {
		w, ok := d.duration(n, setting)
		if ok && w == 0 {
			d.add(d.at(n), setting, "decay 0s is not from 1s to %v in whole seconds; leave the line out for 10s", ratelimit.MaxWindow)
			return
		}
		if ok {
			*v = w
		}
	}
}

// penaltyMember finds the member that an error about a penalty is about: it
// begins with the name.
func (d *decoder) penaltyMember(n *node, setting, what string) (place, string) {
	name, _, _ := strings.Cut(what, " ")
	for _, m := range n.members {
		if strings.EqualFold(m.name, name) {
			return d.at(m.value), join(setting, m.name)
		}
	}
	return d.at(n), setting
}

// planName is what a plan can be called: it is shown in logs and metrics, and
// typed in commands.
var planName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

const quotasExample = "a list of quotas such as [60/minute, 1000/day]"

func (d *decoder) plans(n *node, setting string) {
	if !d.is(n, setting, group, "a group with plans such as \"free: [60/minute, 1000/day]\"") {
		return
	}
	d.c.Plans = nil
	if len(n.members) == 0 {
		d.add(d.at(n), setting, "names no plan, so that no key could have one")
	}
	for _, m := range n.members {
		path := join(setting, m.name)
		d.mark(path, m.value)
		switch {
		case !planName.MatchString(m.name):
			d.add(place{d.file, m.line, m.column}, path, "a plan's name is a lower-case letter and up to 62 lower-case letters, digits, - and _")
		case m.name == anonymous:
			d.add(place{d.file, m.line, m.column}, path, "is the plan of callers without a key; it stands outside plans")
		case m.value.kind == text && m.value.text == "custom":
			d.c.Plans = append(d.c.Plans, Plan{name: m.name, penalty: d.c.Penalty})
		default:
			if plan := d.plan(m.value, path, m.name, d.c.Penalty, quotasExample+", or custom"); plan != nil {
				d.c.Plans = append(d.c.Plans, Plan{name: m.name, plan: plan})
			}
		}
	}
}

func (d *decoder) anonymous(n *node, setting string) {
	if plan := d.plan(n, setting, anonymous, d.c.Penalty, quotasExample); plan != nil {
		d.c.Anonymous = plan
	}
}

func (d *decoder) uncharged(n *node, setting string) {
	if plan := d.plan(n, setting, uncharged, ratelimit.Penalty{}, quotasExample); plan != nil {
		d.c.Uncharged = plan
	}
}

// plan reads the quotas of a plan. It returns nil after a mistake.
func (d *decoder) plan(n *node, setting, name string, penalty ratelimit.Penalty, example string) *ratelimit.Plan {
	if n.kind == list && len(n.items) == 0 {
		d.add(d.at(n), setting, "has no quota; want %s", example)
		return nil
	}
	var quotas []ratelimit.Quota
	var plan *ratelimit.Plan
	for i, item := range d.texts(n, setting, example) {
		path := fmt.Sprintf("%s[%d]", setting, i)
		q, err := ratelimit.ParseQuota(item.text)
		if err != nil {
			d.add(d.at(item), path, "%v", unprefixed(err, "ratelimit: "))
			return nil
		}
		quotas = append(quotas, q)
		// With every further quota, so that the one is found that is too much.
		if plan, err = ratelimit.NewPlan(name, penalty, quotas...); err != nil {
			d.add(d.at(item), path, "%v", unprefixed(err, fmt.Sprintf("ratelimit: plan %q: ", name), fmt.Sprintf("quota %d: ", i+1)))
			return nil
		}
	}
	return plan
}
