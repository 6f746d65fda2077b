package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/animalstore/gatehouse/ratelimit"
)

// anonymous is the name of the plan of callers without a valid key. A key cannot
// have it.
const anonymous = "anonymous"

// A Plan is a plan that a key can have. Either its quotas are fixed, or it is custom
// and each key has its own, or it is suspended or unlimited and has none.
type Plan struct {
	Name  string
	Word  string          // custom, suspended or unlimited; empty if the plan has quotas
	Fixed *ratelimit.Plan // the plan of all its keys; nil if custom

	penalty ratelimit.Penalty // of the keys if custom
}

// String returns what the setting plans says about the plan. Its penalty is another setting.
func (p Plan) String() string { return fmt.Sprint(p.Name, " ", p.Word, " ", p.Fixed) }

// Plans are the plans that a key can have, in the order of the file.
type Plans []Plan

// Of returns the plan of a key that was issued with the named plan and these
// quotas, such as "5000/minute". A custom plan requires quotas, every other plan
// refuses them. The errors tell an operator what to do.
func (ps Plans) Of(name string, quotas []string) (*ratelimit.Plan, error) {
	names := make([]string, len(ps))
	for i, p := range ps {
		if p.Name == name {
			return p.of(quotas)
		}
		names[i] = p.Name
	}
	return nil, fmt.Errorf("unknown plan %q; the plans are %s", name, strings.Join(names, ", "))
}

func (p Plan) of(quotas []string) (*ratelimit.Plan, error) {
	if p.Fixed != nil {
		if len(quotas) > 0 {
			return nil, fmt.Errorf("plan %s has fixed quotas; remove the quotas of the key", p.Name)
		}
		return p.Fixed, nil
	}
	if len(quotas) == 0 {
		return nil, fmt.Errorf("plan %s is custom; give the key quotas such as 5000/minute", p.Name)
	}
	parsed := make([]ratelimit.Quota, len(quotas))
	for i, text := range quotas {
		if err := parsed[i].UnmarshalText([]byte(text)); err != nil {
			return nil, trimPrefixes(err, "ratelimit: ")
		}
	}
	plan, err := ratelimit.NewPlan(p.Name, p.penalty, parsed...)
	if err != nil {
		return nil, trimPrefixes(err, "ratelimit: ")
	}
	return plan, nil
}

// checkPenalty checks the members of the penalty against each other, unless one of them was
// wrong by itself. After a mistake the penalty is the default, so that the plans can be read.
func (r *reader) checkPenalty() {
	p := r.c.Penalty
	if p.Strikes == 0 {
		p = ratelimit.Penalty{} // without bans the rest does not matter
	}
	r.c.Penalty = ratelimit.DefaultPenalty()
	if slices.ContainsFunc(r.mistakes, func(m mistake) bool { return strings.HasPrefix(m.setting, "penalty") }) {
		return
	}
	if _, err := ratelimit.NewPlan("", p, ratelimit.PerDay(1)); err != nil {
		r.c.wrongOption(r, "penalty", err)
		return
	}
	r.c.Penalty = p
}

// planName matches the names that a plan can have. Names appear in logs and are
// typed in commands.
var planName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

const quotasExample = "a list of quotas such as [60/minute, 1000/day]"

func (c *Config) readPlans(n node) {
	c.Plans = nil
	members := n.members(`a group of plans such as "free: [60/minute, 1000/day]"`)
	if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
		n.wrong("must have at least one plan, got none")
	}
	for _, m := range members {
		word := ""
		if m.Kind == yaml.ScalarNode {
			word = m.Value
		}
		p := Plan{Name: m.name, Word: word}
		switch {
		case !planName.MatchString(m.name):
			m.key.wrong("the name of a plan must be a lower-case letter and up to 62 lower-case letters, digits, - and _")
		case m.name == anonymous:
			m.key.wrong("is the plan of callers without a key; move it out of plans")
		case word == "custom":
			p.penalty = c.Penalty
		case word == "suspended":
			p.Fixed = ratelimit.SuspendedPlan(m.name)
		case word == "unlimited":
			p.Fixed = ratelimit.UnlimitedPlan(m.name)
		default:
			p.Word = ""
			p.Fixed = m.plan(m.name, c.Penalty, quotasExample+", or custom, suspended or unlimited")
		}
		c.Plans = append(c.Plans, p)
	}
}

func (c *Config) readAnonymous(n node) { c.Anonymous = n.plan(anonymous, c.Penalty, quotasExample) }

func (c *Config) readUncharged(n node) {
	c.Uncharged = n.plan("uncharged", ratelimit.Penalty{}, quotasExample)
}

// plan reads the quotas of a plan. It returns nil after a mistake.
func (n node) plan(name string, penalty ratelimit.Penalty, example string) (plan *ratelimit.Plan) {
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		n.wrong("must be %s, got an empty list", example)
	}
	var quotas []ratelimit.Quota
	for i, item := range n.items(example) {
		text, ok := item.text()
		if !ok {
			return nil
		}
		var q ratelimit.Quota
		err := q.UnmarshalText([]byte(text))
		if err == nil {
			// Each quota is checked with those before it, so that the error names the one
			// that conflicts.
			quotas = append(quotas, q)
			plan, err = ratelimit.NewPlan(name, penalty, quotas...)
		}
		if err != nil {
			item.wrong("%v", trimPrefixes(err, fmt.Sprintf("ratelimit: plan %q: ", name), "ratelimit: ", fmt.Sprintf("quota %d: ", i+1)))
			return nil
		}
	}
	return plan
}
