package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/animalstore/gatehouse/deprecation"
)

func (d *decoder) deprecations(n *yaml.Node, setting string) {
	if !d.is(n, setting, group, "a group of operations such as \"getPet: {since: 2025-12-05}\"") {
		return
	}
	d.c.Deprecations = map[string]deprecation.Options{}
	for _, m := range d.members(n, setting, nil) {
		if m.name == "" {
			d.add(m.at, setting, "every operation must have a name")
			continue
		}
		d.deprecation(m.value, m.path, m.name)
	}
}

func (d *decoder) deprecation(n *yaml.Node, setting, operation string) {
	if !d.is(n, setting, group, "a group such as {since: 2025-12-05, sunset: 2030-12-05, successor: /v2/pets}") {
		return
	}
	var v deprecation.Options
	before := len(d.mistakes)
	for _, m := range d.members(n, setting, []string{"since", "sunset", "successor", "docs", "brownouts"}) {
		switch m.name {
		case "since":
			v.Since = d.instant(m)
		case "sunset":
			v.Sunset = d.instant(m)
		case "successor":
			v.Successor = d.target(m)
		case "docs":
			v.Documentation = d.target(m)
		case "brownouts":
			v.Brownouts = d.brownouts(m)
		}
	}
	if len(d.mistakes) > before {
		return
	}
	if v.Since.IsZero() {
		d.add(d.at(n), setting, "must have since, the date from which the operation is deprecated")
		return
	}
	if _, err := deprecation.New(v); err != nil {
		d.blameDeprecation(setting, err)
		return
	}
	d.c.Deprecations[operation] = v
}

// instant reads a time, or a date for the beginning of that day in UTC.
func (d *decoder) instant(m member) time.Time {
	const example = "a date such as 2030-12-05, or a time such as 2030-12-05T12:00:00Z"
	if !d.is(m.value, m.path, text, example) {
		return time.Time{}
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if v, err := time.Parse(layout, m.value.Value); err == nil {
			return v.UTC()
		}
	}
	d.add(d.at(m.value), m.path, "must be %s, got %q", example, m.value.Value)
	return time.Time{}
}

func (d *decoder) target(m member) string {
	if !d.is(m.value, m.path, text, "a URL, or a path from the root such as /v2/pets") {
		return ""
	}
	return m.value.Value
}

func (d *decoder) brownouts(m member) (all []deprecation.Brownout) {
	const one = "{start: 2030-11-05T12:00:00Z, end: 2030-11-05T13:00:00Z}"
	if !d.is(m.value, m.path, aList, "a list of periods such as "+one) {
		return nil
	}
	for i, item := range m.value.Content {
		path := fmt.Sprintf("%s[%d]", m.path, i)
		d.c.places[path] = d.at(item)
		if !d.is(item, path, group, "a period such as "+one) {
			continue
		}
		var b deprecation.Brownout
		for _, m := range d.members(item, path, []string{"start", "end"}) {
			if m.name == "start" {
				b.Start = d.instant(m)
			} else {
				b.End = d.instant(m)
			}
		}
		all = append(all, b)
	}
	return all
}

// optionError matches an error of [deprecation.New]: the option, its index and field
// if it is a list, and what is wrong with it.
var optionError = regexp.MustCompile(`^deprecation: Options\.(\w+)(\[\d+\])?(?:\.(\w+))? (.+)$`)

// memberOf replaces the options of [deprecation.New] by the members of a deprecation.
var memberOf = strings.NewReplacer("Options.", "", "Since", "since", "Sunset", "sunset", "Successor", "successor", "Documentation", "docs", "Brownouts", "brownouts")

// blameDeprecation adds a mistake for an error of [deprecation.New].
func (d *decoder) blameDeprecation(setting string, err error) {
	match := optionError.FindStringSubmatch(err.Error())
	what := memberOf.Replace(match[4]) // which can mention a second option
	if field := match[3]; field != "" {
		what = strings.ToLower(field) + " " + what
	}
	d.blame(setting, memberOf.Replace(match[1])+match[2], what)
}

func deprecationValues(c *Config, setting string) []value {
	var values []value
	for _, id := range slices.Sorted(maps.Keys(c.Deprecations)) {
		text := deprecationText(c.Deprecations[id])
		values = append(values, value{name: join(setting, id), text: text, shown: text})
	}
	return values
}

func deprecationText(d deprecation.Options) string {
	members := []string{"since: " + dateText(d.Since)}
	if !d.Sunset.IsZero() {
		members = append(members, "sunset: "+dateText(d.Sunset))
	}
	if d.Successor != "" {
		members = append(members, fmt.Sprintf("successor: %q", d.Successor))
	}
	if d.Documentation != "" {
		members = append(members, fmt.Sprintf("docs: %q", d.Documentation))
	}
	if len(d.Brownouts) > 0 {
		var periods []string
		for _, b := range d.Brownouts {
			periods = append(periods, fmt.Sprintf("{start: %s, end: %s}", dateText(b.Start), dateText(b.End)))
		}
		members = append(members, "brownouts: "+listText(periods))
	}
	return "{" + strings.Join(members, ", ") + "}"
}

// dateText returns a date if t is the beginning of a day.
func dateText(t time.Time) string {
	t = t.UTC()
	if t.Equal(t.Truncate(24 * time.Hour)) {
		return t.Format(time.DateOnly)
	}
	return t.Format(time.RFC3339)
}
