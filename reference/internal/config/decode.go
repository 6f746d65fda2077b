package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/reference/internal/duration"
)

// A decoder sets a Config from the settings file.
type decoder struct {
	*report
	file string
	c    *Config
}

func (d *decoder) at(n *node) place { return place{d.file, n.line, n.column} }

// fields are the members that a group can have, each with the function that reads it.
type fields map[string]func(n *node, setting string)

// ownFields returns the functions for settings that need one of their own, by the
// first part of their name.
func (d *decoder) ownFields() fields {
	return fields{
		"on_redis_failure": d.onRedisFailure,
		"trusted_proxies":  d.trustedProxies,
		"cors_origins":     d.corsOrigins,
		"penalty":          func(*node, string) {}, // decode reads it first
		"plans":            d.plans,
		"anonymous":        d.anonymous,
		"uncharged":        d.uncharged,
		"deprecations":     d.deprecations,
		"deny":             func(n *node, setting string) { d.accessList(n, setting, &d.c.Deny) },
		"allow":            func(n *node, setting string) { d.accessList(n, setting, &d.c.Allow) },
	}
}

// addTextSettings adds the settings that are set from text, with their groups.
func (d *decoder) addTextSettings(f fields) {
	groups := map[string]fields{}
	for _, s := range settings {
		if s.set == nil {
			continue
		}
		read := func(n *node, _ string) { d.setting(n, s) }
		name, member, nested := strings.Cut(s.name, ".")
		switch {
		case !nested:
			f[name] = read
		case groups[name] == nil:
			groups[name] = fields{member: read}
			f[name] = func(n *node, setting string) {
				if d.is(n, setting, group, fmt.Sprintf("a group such as {%s: %s}", member, s.values(Default())[0].text)) {
					d.group(n, setting, groups[name])
				}
			}
		default:
			groups[name][member] = read
		}
	}
}

// decode sets everything in the file.
func (d *decoder) decode(root *node) {
	f := d.ownFields()
	d.addTextSettings(f)
	// Plans contain the penalty, so the penalty is read first.
	for _, m := range root.members {
		if m.name == "penalty" {
			d.penalty(m.value, m.name)
		}
	}
	d.c.setDefaultPlans()
	d.group(root, "", f)
}

// group reads the members of a group. Unknown members are mistakes.
func (d *decoder) group(n *node, setting string, known fields) {
	for _, m := range n.members {
		path := join(setting, m.name)
		read, ok := known[m.name]
		if !ok {
			if len(d.mistakes) >= maxMistakes { // only counted: many suggestions take long
				d.add(place{d.file, m.line, m.column}, path, "unknown setting")
				continue
			}
			names := make([]string, 0, len(known))
			for name := range known {
				names = append(names, name)
			}
			slices.Sort(names)
			advice := didYouMean(m.name, names)
			if advice == "" {
				advice = " known here are " + strings.Join(names, ", ")
			}
			d.add(place{d.file, m.line, m.column}, path, "unknown setting;%s", advice)
			continue
		}
		d.mark(path, m.value)
		read(m.value, path)
	}
}

// mark records where a setting was set.
func (d *decoder) mark(setting string, n *node) { d.c.places[setting] = d.at(n).String() }

// is reports whether the value is of the wanted kind. If not, it adds a mistake.
func (d *decoder) is(n *node, setting string, want kind, example string) bool {
	switch {
	case n.kind == want:
		return true
	case n.kind == refused:
	case n.kind == nothing:
		d.add(d.at(n), setting, "must be %s, got nothing; to keep the default, remove the line", example)
	case want == text && strings.HasPrefix(example, "text") && (n.kind == number || n.kind == boolean):
		d.add(d.at(n), setting, "must be %s, got %v; put it in quotes to make it text", example, n.kind)
	default:
		d.add(d.at(n), setting, "must be %s, got %v", example, n.kind)
	}
	return false
}

// setting reads the value of a setting that has no function of its own.
func (d *decoder) setting(n *node, s setting) {
	example := "text"
	switch {
	case s.kind == number:
		example = "a whole number"
	case s.example != "":
		example = s.example
	}
	if !d.is(n, s.name, s.kind, example) {
		return
	}
	if err := s.set(d.c, n.text); err != nil {
		d.add(d.at(n), s.name, "%v", err)
	}
}

func (d *decoder) onRedisFailure(n *node, setting string) {
	if !d.is(n, setting, text, "local, open or closed") {
		return
	}
	switch d.c.OnFailure = n.text; n.text {
	case "local", "open", "closed":
	default:
		d.add(d.at(n), setting, "must be local, open or closed, got %q", n.text)
	}
}

func (d *decoder) trustedProxies(n *node, setting string) {
	d.c.TrustedProxies = nil
	for i, item := range d.texts(n, setting, "a list of networks such as [10.0.0.0/8]") {
		prefixes, err := clientip.ParsePrefixes([]string{item.text})
		if err == nil {
			_, err = clientip.FromXForwardedFor(prefixes)
		}
		if err != nil {
			d.add(d.at(item), fmt.Sprintf("%s[%d]", setting, i), "%v", trimPrefixes(err, "clientip: ", "trusted proxies: "))
			continue
		}
		d.c.TrustedProxies = append(d.c.TrustedProxies, prefixes...)
	}
	slices.SortFunc(d.c.TrustedProxies, netip.Prefix.Compare)
}

func (d *decoder) corsOrigins(n *node, setting string) {
	d.c.CORSOrigins = nil
	for i, item := range d.texts(n, setting, "a list of origins such as [https://app.example]") {
		if err := checkOrigin(item.text); err != nil {
			d.add(d.at(item), fmt.Sprintf("%s[%d]", setting, i), "%v", err)
			continue
		}
		d.c.CORSOrigins = append(d.c.CORSOrigins, item.text)
	}
}

// texts returns the items of a list of text. Items of other kinds are mistakes.
func (d *decoder) texts(n *node, setting, example string) []*node {
	if !d.is(n, setting, list, example) {
		return nil
	}
	for i, item := range n.items {
		path := fmt.Sprintf("%s[%d]", setting, i)
		d.mark(path, item)
		if !d.is(item, path, text, "text in "+example) {
			return nil
		}
	}
	return n.items
}

// whole reads a whole number in decimal digits.
func (d *decoder) whole(n *node, setting string) (int, bool) {
	if !d.is(n, setting, number, "a whole number") {
		return 0, false
	}
	v, err := strconv.Atoi(n.text)
	if err != nil || strconv.Itoa(v) != n.text {
		d.add(d.at(n), setting, "must be a whole number in decimal digits, got %s", n.text)
		return 0, false
	}
	return v, true
}

func (d *decoder) duration(n *node, setting string) (time.Duration, bool) {
	const example = "a duration such as 90s, 24h or 30d"
	if !d.is(n, setting, text, example) {
		return 0, false
	}
	v, err := duration.Parse(n.text)
	if err != nil {
		d.add(d.at(n), setting, "must be %s, got %q", example, n.text)
		return 0, false
	}
	return v, true
}

// instant reads a time, or a date for the beginning of that day in UTC.
func (d *decoder) instant(n *node, setting string) (time.Time, bool) {
	const example = "a date such as 2030-12-05, or a time such as 2030-12-05T12:00:00Z"
	if !d.is(n, setting, text, example) {
		return time.Time{}, false
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if v, err := time.Parse(layout, n.text); err == nil {
			return v.UTC(), true
		}
	}
	d.add(d.at(n), setting, "must be %s, got %q", example, n.text)
	return time.Time{}, false
}
