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
			m.wrongDeprecation(err)
		}
		c.Deprecations[m.name] = d
	}
}

func (n node) deprecation() (d deprecation.Options) {
	for _, m := range n.members("a group such as {since: 2025-12-05, sunset: 2030-12-05, successor: /v2/pets}") {
		switch m.name {
		case "since":
			d.Since = m.instant()
		case "sunset":
			d.Sunset = m.instant()
		case "successor":
			d.Successor, _ = m.text()
		case "docs":
			d.Documentation, _ = m.text()
		case "brownouts":
			const one = "{start: 2030-11-05T12:00:00Z, end: 2030-11-05T13:00:00Z}"
			for _, item := range m.items("a list of periods such as " + one) {
				d.Brownouts = append(d.Brownouts, item.brownout("a period such as "+one))
			}
		default:
			m.unknown()
		}
	}
	return d
}

func (n node) brownout(what string) (b deprecation.Brownout) {
	for _, m := range n.members(what) {
		switch m.name {
		case "start":
			b.Start = m.instant()
		case "end":
			b.End = m.instant()
		default:
			m.unknown()
		}
	}
	return b
}

// instant reads a time, or a date for the beginning of that day in UTC.
func (n node) instant() time.Time {
	v, _ := parsed(n, func(text string) (time.Time, error) {
		for _, layout := range []string{time.DateOnly, time.RFC3339} {
			if v, err := time.Parse(layout, text); err == nil {
				return v.UTC(), nil
			}
		}
		return time.Time{}, fmt.Errorf("must be a date such as 2030-12-05, or a time such as 2030-12-05T12:00:00Z, got %q", text)
	})
	return v
}

// optionError matches an error of [deprecation.New]: the option, its index and field
// if it is a list, and what is wrong with it.
var optionError = regexp.MustCompile(`^deprecation: Options\.(\w+)(\[\d+\])?(?:\.(\w+))? (.+)$`)

// memberOf replaces the options of [deprecation.New] by the members of a deprecation.
var memberOf = strings.NewReplacer("Options.", "", "Since", "since", "Sunset", "sunset", "Successor", "successor", "Documentation", "docs", "Brownouts", "brownouts")

// wrongDeprecation adds a mistake for an error of [deprecation.New].
func (n node) wrongDeprecation(err error) {
	match := optionError.FindStringSubmatch(err.Error())
	what := memberOf.Replace(match[4]) // which can mention a second option
	if field := match[3]; field != "" {
		what = strings.ToLower(field) + " " + what
	}
	n.r.c.wrong(&n.r.report, n.path+"."+memberOf.Replace(match[1])+match[2], "%s", what)
}

func (c *Config) readStability(n node) {
	c.Stability = map[string]string{}
	for _, m := range n.members(`a group of operations such as "getUsage: beta"`) {
		if marker, ok := parsed(m.node, func(text string) (string, error) { return text, oneOf(text, "experimental", "beta") }); ok {
			c.Stability[m.name] = marker
		}
	}
}
