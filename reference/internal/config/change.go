package config

import (
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// A Change is a setting that differs between two Configs.
type Change struct {
	Setting string // as in the file, after its groups: "plans.free"

	// Old and New are the values as the file has them; "" for a plan or an operation
	// that is not there. They have no secret.
	Old, New string

	// Added and Removed are the items that differ, if the value is a list.
	Added, Removed []string

	Restart bool // a reload does not apply it
}

// Attrs returns the change for the log. Of a list, which can be long, it has the items
// that differ.
func (c Change) Attrs() []slog.Attr {
	attrs := []slog.Attr{slog.String("setting", c.Setting)}
	if len(c.Added)+len(c.Removed) == 0 {
		return append(attrs, slog.String("old", c.Old), slog.String("new", c.New))
	}
	if len(c.Removed) > 0 {
		attrs = append(attrs, slog.Any("removed", c.Removed))
	}
	if len(c.Added) > 0 {
		attrs = append(attrs, slog.Any("added", c.Added))
	}
	return attrs
}

// A text is a value as the file or a variable has it, without what is secret.
type text struct {
	whole  string   // in one line
	items  []string // if it is a list
	secret bool     // something is hidden
}

// keep keeps the text of a setting, or of each member of one that is a group.
func (c *Config) keep(s setting, n node) {
	switch {
	case n.Kind == yaml.MappingNode:
		for pair := range slices.Chunk(n.Content, 2) {
			c.texts[join(s.name, pair[0].Value)] = text{whole: textOf(pair[1]).whole}
		}
	case s.hide != nil:
		shown := s.hide(n.Value)
		c.texts[s.name] = text{whole: shown, secret: shown != n.Value}
	default:
		c.texts[s.name] = textOf(n.Node)
	}
}

func textOf(n *yaml.Node) text {
	parts := make([]string, len(n.Content))
	for i, inner := range n.Content {
		parts[i] = textOf(inner).whole
	}
	switch n.Kind {
	case yaml.SequenceNode:
		return text{whole: "[" + strings.Join(parts, ", ") + "]", items: parts}
	case yaml.MappingNode:
		var members []string
		for pair := range slices.Chunk(parts, 2) {
			members = append(members, strings.Join(pair, ": "))
		}
		return text{whole: "{" + strings.Join(members, ", ") + "}"}
	default:
		return text{whole: n.Value}
	}
}

// Changes returns the settings whose values in next differ from those in c.
func (c *Config) Changes(next *Config) []Change {
	both := maps.Clone(c.texts)
	maps.Copy(both, next.texts)
	names := slices.Sorted(maps.Keys(both))
	var changes []Change
	after := next.settings()
	for i, s := range c.settings() {
		for _, name := range names {
			if name != s.name && !strings.HasPrefix(name, s.name+".") {
				continue
			}
			from, to := c.texts[name], next.texts[name]
			change := Change{Setting: name, Old: from.whole, New: to.whole, Restart: s.restart}
			changed := from.whole != to.whole
			switch {
			case s.hide != nil:
				changed = !reflect.DeepEqual(s.field, after[i].field)
			case from.items != nil && to.items != nil: // their order does not matter
				change.Added, change.Removed = without(to.items, from.items), without(from.items, to.items)
				changed = len(change.Added)+len(change.Removed) > 0
			}
			if changed {
				changes = append(changes, change)
			}
		}
	}
	return changes
}

// without returns the items that are not among others.
func without(items, others []string) (rest []string) {
	known := make(map[string]bool, len(others))
	for _, o := range others {
		known[o] = true
	}
	for _, item := range items {
		if !known[item] {
			rest = append(rest, item)
		}
	}
	return rest
}

// After returns the settings of a running server that has c and reads next: those of
// next, with the settings that need a restart as they are in c. The error names
// settings that contradict each other in the result, and TLS that is turned on or off.
func (c *Config) After(next *Config) (*Config, error) {
	merged := *next
	merged.places, merged.texts = maps.Clone(next.places), maps.Clone(next.texts)
	kept := merged.settings()
	for i, s := range c.settings() {
		if !s.restart {
			continue
		}
		reflect.ValueOf(kept[i].field).Elem().Set(reflect.ValueOf(s.field).Elem())
		merged.texts[s.name] = c.texts[s.name]
		delete(merged.places, s.name)
		if where, ok := c.places[s.name]; ok {
			merged.places[s.name] = where
		}
	}
	var r report
	if merged.TLS() != c.TLS() {
		merged.wrong(&r, "tls_cert", "turning TLS on or off needs a restart")
	} else {
		merged.check(&r)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return &merged, nil
}
