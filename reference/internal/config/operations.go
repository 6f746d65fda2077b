package config

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
)

func (c *Config) readDeprecations(n node) {
	c.Deprecations = map[string]deprecation.Options{}
	for _, m := range n.members(`a group of operations such as "getPet: {since: 2025-12-05}"`) {
		mistakes := len(n.r.mistakes)
		d := m.deprecation()
		if len(n.r.mistakes) > mistakes {
			continue
		}
		if d.Since.IsZero() {
			m.wrong("must have since, the date from which the operation is deprecated")
		} else if _, err := deprecation.New(d); err != nil {
			c.wrongOption(n.r, m.path, err)
		}
		c.Deprecations[m.name] = d
	}
}

func (n node) deprecation() (d deprecation.Options) {
	n.group("a group such as {since: 2025-12-05, sunset: 2030-12-05, successor: /v2/pets}", map[string]value{
		"since":     one(&d.Since, parseInstant),
		"sunset":    one(&d.Sunset, parseInstant),
		"successor": one(&d.Successor, parseText),
		"docs":      one(&d.Documentation, parseText),
		"brownouts": {read: func(n node) {
			const period = "{start: 2030-11-05T12:00:00Z, end: 2030-11-05T13:00:00Z}"
			for _, item := range n.items("a list of periods such as " + period) {
				var b deprecation.Brownout
				item.group("a period such as "+period, map[string]value{"start": one(&b.Start, parseInstant), "end": one(&b.End, parseInstant)})
				d.Brownouts = append(d.Brownouts, b)
			}
		}},
	})
	return d
}

// parseInstant accepts a time, or a date for the beginning of that day in UTC.
func parseInstant(text string) (time.Time, error) {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if v, err := time.Parse(layout, text); err == nil {
			return v.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("must be a date such as 2030-12-05, or a time such as 2030-12-05T12:00:00Z, got %q", text)
}

func (c *Config) readStability(n node) {
	c.Stability = map[string]string{}
	for _, m := range n.members(`a group of operations such as "getUsage: beta"`) {
		var marker string
		word(&marker, "experimental", "beta").read(m.node)
		c.Stability[m.name] = marker
	}
}

// optionError matches an error of [deprecation.New] or [ratelimit.NewPlan] about an option:
// the option, its index and field if it is a list, and what is wrong with it.
var optionError = regexp.MustCompile(`(?:Options|Penalty)\.(\w+)(\[\d+\])?(?:\.(\w+))? (.+)$`)

// settingOf replaces the options by the settings.
var settingOf = strings.NewReplacer("Options.Since", "since", "Options.Sunset", "sunset", "Documentation", "docs", "Penalty.Ban", "penalty.ban")

// wrongOption adds a mistake for an error about an option, which is a member of a group.
func (c *Config) wrongOption(r *reader, group string, err error) {
	match := optionError.FindStringSubmatch(err.Error())
	option, index, field, what := match[1], match[2], match[3], settingOf.Replace(match[4]) // which can mention a second option
	if field != "" {
		what = strings.ToLower(field) + " " + what
	}
	c.wrong(&r.report, group+"."+strings.ToLower(settingOf.Replace(option))+index, "%s", what)
}
