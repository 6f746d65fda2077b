package config

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
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
	word    string            // custom, suspended or unlimited; "": it has quotas
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
func (p Plan) Word() string { return p.word }

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
		{name: "enterprise", word: "custom", penalty: c.Penalty},
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
		if err := parsed[i].UnmarshalText([]byte(text)); err != nil {
			return nil, trimPrefixes(err, "ratelimit: ")
		}
	}
	plan, err := ratelimit.NewPlan(p.name, p.penalty, parsed...)
	if err != nil {
		return nil, trimPrefixes(err, "ratelimit: ")
	}
	return plan, nil
}

// checkPenalty checks the penalty that the file sets, of which some members may have been
// wrong in themselves.
func (d *decoder) checkPenalty(wrong bool) {
	p := d.c.Penalty
	if p.Decay == 0 { // means the default in a Penalty
		d.blame("penalty", "decay", fmt.Sprintf("must be whole seconds from 1s to %.0fh, got 0s", fixedwindow.MaxLength.Hours()))
		d.c.Penalty = ratelimit.DefaultPenalty()
		return
	}
	if p.Strikes == 0 {
		p = ratelimit.Penalty{} // without bans the rest does not matter
	}
	if !wrong {
		_, err := ratelimit.NewPlan("", p, ratelimit.PerDay(1))
		if err == nil {
			d.c.Penalty = p
			return
		}
		text := strings.ReplaceAll(err.Error(), "from Penalty.Ban", "from penalty.ban")
		match := penaltyError.FindStringSubmatch(text)
		d.blame("penalty", strings.ToLower(match[1]), match[2])
	}
	d.c.Penalty = ratelimit.DefaultPenalty()
}

// penaltyError matches an error of [ratelimit.NewPlan] about the penalty: the field
// and what is wrong with it.
var penaltyError = regexp.MustCompile(`^(?:ratelimit: )?(?:plan "": )?(?:penalty: )?(?:Penalty\.)?(\w+) (.+)$`)

// planName matches the names that a plan can have. Names appear in logs and are
// typed in commands.
var planName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

const quotasExample = "a list of quotas such as [60/minute, 1000/day]"

func (d *decoder) plans(n *yaml.Node, setting string) {
	if !d.is(n, setting, group, "a group of plans such as \"free: [60/minute, 1000/day]\"") {
		return
	}
	d.c.Plans = nil
	members := d.members(n, setting, nil)
	if len(n.Content) == 0 {
		d.add(d.at(n), setting, "must have at least one plan, got none")
	}
	for _, m := range members {
		word := ""
		if m.value.Kind == yaml.ScalarNode {
			word = m.value.Value
		}
		switch {
		case !planName.MatchString(m.name):
			d.add(m.at, m.path, "the name of a plan must be a lower-case letter and up to 62 lower-case letters, digits, - and _")
		case m.name == anonymous:
			d.add(m.at, m.path, "is the plan of callers without a key; move it out of plans")
		case word == "custom":
			d.c.Plans = append(d.c.Plans, Plan{name: m.name, word: word, penalty: d.c.Penalty})
		case word == "suspended":
			d.c.Plans = append(d.c.Plans, Plan{name: m.name, word: word, plan: ratelimit.SuspendedPlan(m.name)})
		case word == "unlimited":
			d.c.Plans = append(d.c.Plans, Plan{name: m.name, word: word, plan: ratelimit.UnlimitedPlan(m.name)})
		default:
			if plan := d.plan(m.value, m.path, m.name, d.c.Penalty, quotasExample+", or custom, suspended or unlimited"); plan != nil {
				d.c.Plans = append(d.c.Plans, Plan{name: m.name, plan: plan})
			}
		}
	}
}

func (d *decoder) anonymous(n *yaml.Node, setting string) {
	if plan := d.plan(n, setting, anonymous, d.c.Penalty, quotasExample); plan != nil {
		d.c.Anonymous = plan
	}
}

func (d *decoder) uncharged(n *yaml.Node, setting string) {
	if plan := d.plan(n, setting, uncharged, ratelimit.Penalty{}, quotasExample); plan != nil {
		d.c.Uncharged = plan
	}
}

// plan reads the quotas of a plan. It returns nil after a mistake.
func (d *decoder) plan(n *yaml.Node, setting, name string, penalty ratelimit.Penalty, example string) *ratelimit.Plan {
	if kindOf(n) == aList && len(n.Content) == 0 {
		if d.is(n, setting, aList, example) {
			d.add(d.at(n), setting, "must be %s, got an empty list", example)
		}
		return nil
	}
	var quotas []ratelimit.Quota
	var plan *ratelimit.Plan
	for i, item := range d.texts(n, setting, example) {
		path := fmt.Sprintf("%s[%d]", setting, i)
		var q ratelimit.Quota
		err := q.UnmarshalText([]byte(item.Value))
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

// quotas is the rule of a plan of callers that send no key, which read reads.
func quotas(field func(*Config) **ratelimit.Plan, read func(d *decoder, n *yaml.Node, setting string)) rule {
	return rule{read: read, show: func(c *Config, setting string) []value {
		return []value{listValue(setting, quotaTexts(*field(c)))}
	}}
}

func planValues(c *Config, setting string) []value {
	values := make([]value, len(c.Plans))
	for i, p := range c.Plans {
		text := p.Word()
		if text == "" {
			text = listText(quotaTexts(p.plan))
		}
		values[i] = value{name: join(setting, p.name), text: text, shown: text}
	}
	return values
}

func quotaTexts(p *ratelimit.Plan) []string {
	var texts []string
	for _, q := range p.Quotas() {
		texts = append(texts, q.String())
	}
	return texts
}
