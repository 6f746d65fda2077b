package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// A Change is a setting that differs between two Configs.
type Change struct {
	Setting string // as in the file, after its groups: "plans.free"

	// Old and New are the values as the file has them, and of a list, which can be long,
	// the items that differ; "" for a plan or an operation that is not there. They have
	// no secret.
	Old, New string

	Restart bool // a reload does not apply it
}

// keep keeps the items of a setting: those of a list, or its only one. Each member of a
// group has its own.
func (c *Config) keep(s setting, n node) {
	switch {
	case n.Kind == yaml.MappingNode:
		for pair := range slices.Chunk(n.Content, 2) {
			c.texts[join(s.name, pair[0].Value)] = []string{textOf(pair[1])}
		}
	case n.Kind == yaml.SequenceNode:
		c.texts[s.name] = textsOf(n.Content)
	case s.hide == nil:
		c.texts[s.name] = []string{n.Value}
	default:
		shown := s.hide(n.Value)
		c.texts[s.name] = []string{shown}
		if shown != n.Value && n.at().line > 0 {
			c.secrets = append(c.secrets, s.name)
		}
	}
}

func textsOf(nodes []*yaml.Node) []string {
	texts := make([]string, len(nodes))
	for i, n := range nodes {
		texts[i] = textOf(n)
	}
	return texts
}

// textOf returns a value in one line.
func textOf(n *yaml.Node) string {
	texts := textsOf(n.Content)
	switch n.Kind {
	case yaml.SequenceNode:
		return "[" + strings.Join(texts, ", ") + "]"
	case yaml.MappingNode:
		var members []string
		for pair := range slices.Chunk(texts, 2) {
			members = append(members, strings.Join(pair, ": "))
		}
		return "{" + strings.Join(members, ", ") + "}"
	default:
		return n.Value
	}
}

// Changes returns the settings whose values in next differ from those in c. The order of a
// list does not matter.
func (c *Config) Changes(next *Config) (changes []Change) {
	both := maps.Clone(c.texts)
	maps.Copy(both, next.texts)
	names := slices.Sorted(maps.Keys(both))
	after := next.settings()
	for i, s := range c.settings() {
		for _, name := range names {
			if name != s.name && !strings.HasPrefix(name, s.name+".") {
				continue
			}
			from, to := c.texts[name], next.texts[name]
			removed, added := without(from, to), without(to, from)
			if s.hide != nil && !reflect.DeepEqual(s.field, after[i].field) { // which does not show
				removed, added = from, to
			}
			if len(removed)+len(added) > 0 {
				changes = append(changes, Change{name, strings.Join(removed, ", "), strings.Join(added, ", "), s.restart})
			}
		}
	}
	return changes
}

// without returns the items that are not among others.
func without(items, others []string) []string {
	known := make(map[string]bool, len(others))
	for _, o := range others {
		known[o] = true
	}
	return slices.DeleteFunc(slices.Clone(items), func(item string) bool { return known[item] })
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
	if merged.TLS() != c.TLS() {
		var r report
		merged.wrong(&r, "tls_cert", "turning TLS on or off needs a restart")
		return nil, r.err()
	}
	if err := merged.Check(); err != nil {
		return nil, err
	}
	return &merged, nil
}
