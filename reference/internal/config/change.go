package config

import (
	"maps"
	"reflect"
)

// Changes returns the names of the settings whose values in next differ from those in c: of
// those that a reload applies, and of those that need a restart.
func (c *Config) Changes(next *Config) (applied, restart []string) {
	applied, restart = []string{}, []string{}
	after := next.settings()
	for i, s := range c.settings() {
		switch {
		case s.text() == after[i].text():
		case s.restart:
			restart = append(restart, s.name)
		default:
			applied = append(applied, s.name)
		}
	}
	return applied, restart
}

// After returns the settings of a running server that has c and reads next: those of
// next, with the settings that need a restart as they are in c. The error names
// settings that contradict each other in the result, and TLS that is turned on or off.
func (c *Config) After(next *Config) (*Config, error) {
	merged := *next
	merged.places = maps.Clone(next.places)
	kept := merged.settings()
	for i, s := range c.settings() {
		if !s.restart {
			continue
		}
		reflect.ValueOf(kept[i].field).Elem().Set(reflect.ValueOf(s.field).Elem())
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
