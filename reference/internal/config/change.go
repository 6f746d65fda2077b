package config

import (
	"log/slog"
	"maps"
	"slices"
)

// A Change is a setting that differs between two Configs.
type Change struct {
	Setting string // as in the file, after its groups: "plans.free"

	// Old and New are the values as the file has them; "" for a plan or an operation
	// that is not there. Of a secret they are "[redacted]".
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

// Changes returns the settings whose values in next differ from those in c.
func (c *Config) Changes(next *Config) []Change {
	var changes []Change
	for _, s := range settings {
		before, after := byName(s.show(c, s.name)), byName(s.show(next, s.name))
		names := maps.Clone(before)
		maps.Copy(names, after)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			from, to := before[name], after[name]
			if from.text == to.text {
				continue
			}
			changes = append(changes, Change{
				Setting: name, Old: from.shown, New: to.shown,
				Added: without(to.items, from.items), Removed: without(from.items, to.items),
				Restart: s.restart,
			})
		}
	}
	return changes
}

func byName(values []value) map[string]value {
	m := make(map[string]value, len(values))
	for _, v := range values {
		m[v.name] = v
	}
	return m
}

// without returns the items that are not among others.
func without(items, others []string) []string {
	known := make(map[string]bool, len(others))
	for _, o := range others {
		known[o] = true
	}
	return slices.DeleteFunc(slices.Clone(items), func(i string) bool { return known[i] })
}

// After returns the settings of a running server that has c and reads next: those of
// next, with the settings that need a restart as they are in c. The error names
// settings that contradict each other in the result, and TLS that is turned on or off.
func (c *Config) After(next *Config) (*Config, error) {
	merged := *next
	merged.places = maps.Clone(next.places)
	for _, s := range settings {
		if !s.restart {
			continue
		}
		s.copy(&merged, c)
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
