package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
)

func (d *decoder) deprecations(n *node, setting string) {
	if !d.is(n, setting, group, "a group of operations such as \"getPet: {since: 2025-12-05}\"") {
		return
	}
	d.c.Deprecations = map[string]deprecation.Options{}
	for _, m := range n.members {
		path := join(setting, m.name)
		d.mark(path, m.value)
		if m.name == "" {
			d.add(place{d.file, m.line, m.column}, setting, "every operation must have a name")
			continue
		}
		d.deprecation(m.value, path, m.name)
	}
}

func (d *decoder) deprecation(n *node, setting, operation string) {
	if !d.is(n, setting, group, "a group such as {since: 2025-12-05, sunset: 2030-12-05, successor: /v2/pets}") {
		return
	}
	var v deprecation.Options
	before := len(d.mistakes)
	instant := func(t *time.Time) func(*node, string) {
		return func(n *node, setting string) { *t, _ = d.instant(n, setting) }
	}
	target := func(s *string) func(*node, string) {
		return func(n *node, setting string) {
			if d.is(n, setting, text, "a URL, or a path from the root such as /v2/pets") {
				*s = n.text
			}
		}
	}
	d.group(n, setting, fields{
		"since":     instant(&v.Since),
		"sunset":    instant(&v.Sunset),
		"successor": target(&v.Successor),
		"docs":      target(&v.Documentation),
		"brownouts": func(n *node, setting string) { v.Brownouts = d.brownouts(n, setting) },
	})
	if len(d.mistakes) > before {
		return
	}
	if v.Since.IsZero() {
		d.add(d.at(n), setting, "must have since, the date from which the operation is deprecated")
		return
	}
	if _, err := deprecation.New(v); err != nil {
		at, path, what := d.deprecationMember(n, setting, err)
		d.add(at, path, "%s", what)
		return
	}
	d.c.Deprecations[operation] = v
}

// optionError matches an error of [deprecation.New]: the option, its index and field
// if it is a list, and what is wrong with it.
var optionError = regexp.MustCompile(`^deprecation: Options\.(\w+)(?:\[(\d+)\](?:\.(\w+))?)? (.+)$`)

// memberOf maps the options of [deprecation.New] to the members of a deprecation.
var memberOf = map[string]string{
	"Since": "since", "Sunset": "sunset", "Successor": "successor", "Documentation": "docs", "Brownouts": "brownouts",
}

// deprecationMember finds the member that an error of [deprecation.New] is about.
func (d *decoder) deprecationMember(n *node, setting string, err error) (at place, path, what string) {
	match := optionError.FindStringSubmatch(err.Error())
	if match == nil {
		return d.at(n), setting, err.Error()
	}
	option, index, field, what := match[1], match[2], match[3], match[4]
	for option, member := range memberOf { // an error can mention a second option
		what = strings.ReplaceAll(what, "Options."+option, member)
	}
	if field != "" {
		what = strings.ToLower(field) + " " + what
	}
	for _, m := range n.members {
		if m.name != memberOf[option] {
			continue
		}
		at, path = d.at(m.value), join(setting, m.name)
		if i, err := strconv.Atoi(index); err == nil && i < len(m.value.items) {
			at, path = d.at(m.value.items[i]), fmt.Sprintf("%s[%d]", path, i)
		}
		return at, path, what
	}
	return d.at(n), setting, memberOf[option] + " " + what
}

func (d *decoder) brownouts(n *node, setting string) []deprecation.Brownout {
	const one = "{start: 2030-11-05T12:00:00Z, end: 2030-11-05T13:00:00Z}"
	if !d.is(n, setting, list, "a list of periods such as "+one) {
		return nil
	}
	var all []deprecation.Brownout
	for i, item := range n.items {
		path := fmt.Sprintf("%s[%d]", setting, i)
		d.mark(path, item)
		if !d.is(item, path, group, "a period such as "+one) {
			continue
		}
		var b deprecation.Brownout
		d.group(item, path, fields{
			"start": func(n *node, setting string) { b.Start, _ = d.instant(n, setting) },
			"end":   func(n *node, setting string) { b.End, _ = d.instant(n, setting) },
		})
		all = append(all, b)
	}
	return all
}
