package config

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// penalty sets the penalty. Members that the file leaves out keep their defaults.
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
		p = ratelimit.Penalty{} // without bans the rest does not matter
	}
	// NewPlan checks the penalty.
	if _, err := ratelimit.NewPlan("", p, ratelimit.PerDay(1)); err != nil {
		at, path, what := d.penaltyMember(n, setting, err)
		d.add(at, path, "%s", what)
		return
	}
	d.c.Penalty = p
}

// decay reads the time after which one strike is forgotten. In a Penalty, zero
// means the default; in the file it is a mistake.
func (d *decoder) decay(v *time.Duration) func(*node, string) {
	return func(n *node, setting string) {
		w, ok := d.duration(n, setting)
		if ok && w == 0 {
			d.add(d.at(n), setting, "must be whole seconds from 1s to %.0fh, got 0s", ratelimit.MaxWindow.Hours())
			return
		}
		if ok {
			*v = w
		}
	}
}

// penaltyError matches an error of [ratelimit.NewPlan] about the penalty: the field
// and what is wrong with it.
var penaltyError = regexp.MustCompile(`^(?:ratelimit: )?(?:plan "": )?(?:penalty: )?(?:Penalty\.)?(\w+) (.+)$`)

// penaltyMember finds the member that an error about the penalty is about.
func (d *decoder) penaltyMember(n *node, setting string, err error) (at place, path, what string) {
	match := penaltyError.FindStringSubmatch(strings.ReplaceAll(err.Error(), "from Penalty.Ban", "from penalty.ban"))
	if match == nil {
		return d.at(n), setting, err.Error()
	}
	for _, m := range n.members {
		if strings.EqualFold(m.name, match[1]) {
			return d.at(m.value), join(setting, m.name), match[2]
		}
	}
	return d.at(n), setting, strings.ToLower(match[1]) + " " + match[2]
}

// planName matches the names that a plan can have. Names appear in logs and are
// typed in commands.
var planName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

const quotasExample = "a list of quotas such as [60/minute, 1000/day]"

func (d *decoder) plans(n *node, setting string) {
	if !d.is(n, setting, group, "a group of plans such as \"free: [60/minute, 1000/day]\"") {
		return
	}
	d.c.Plans = nil
	if len(n.members) == 0 {
		d.add(d.at(n), setting, "must have at least one plan, got none")
	}
	for _, m := range n.members {
		path := join(setting, m.name)
		d.mark(path, m.value)
		switch {
		case !planName.MatchString(m.name):
			d.add(place{d.file, m.line, m.column}, path, "the name of a plan must be a lower-case letter and up to 62 lower-case letters, digits, - and _")
		case m.name == anonymous:
			d.add(place{d.file, m.line, m.column}, path, "is the plan of callers without a key; move it out of plans")
		case m.value.kind == text && m.value.text == "custom":
			d.c.Plans = append(d.c.Plans, Plan{name: m.name, penalty: d.c.Penalty})
		case m.value.kind == text && m.value.text == "suspended":
			d.c.Plans = append(d.c.Plans, Plan{name: m.name, plan: ratelimit.SuspendedPlan(m.name)})
		case m.value.kind == text && m.value.text == "unlimited":
			d.c.Plans = append(d.c.Plans, Plan{name: m.name, plan: ratelimit.UnlimitedPlan(m.name)})
		default:
			if plan := d.plan(m.value, path, m.name, d.c.Penalty, quotasExample+", or custom, suspended or unlimited"); plan != nil {
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
		d.add(d.at(n), setting, "must be %s, got an empty list", example)
		return nil
	}
	var quotas []ratelimit.Quota
	var plan *ratelimit.Plan
	for i, item := range d.texts(n, setting, example) {
		path := fmt.Sprintf("%s[%d]", setting, i)
		q, err := ratelimit.ParseQuota(item.text)
		if err != nil {
			d.add(d.at(item), path, "%v", trimPrefixes(err, "ratelimit: "))
			return nil
		}
		quotas = append(quotas, q)
		// Each quota is checked with those before it, so that the error names the
		// one that conflicts.
		if plan, err = ratelimit.NewPlan(name, penalty, quotas...); err != nil {
			d.add(d.at(item), path, "%v", trimPrefixes(err, fmt.Sprintf("ratelimit: plan %q: ", name), fmt.Sprintf("quota %d: ", i+1)))
			return nil
		}
	}
	return plan
}
