package config

import (
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/duration"
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

// Changes returns the settings whose values in next differ from those in c.
func (c *Config) Changes(next *Config) []Change {
	var changes []Change
	after := next.settings()
	for i, s := range c.settings() {
		before, now := s.texts(), after[i].texts()
		names := maps.Clone(before)
		maps.Copy(names, now)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			from, to := before[name], now[name]
			change := Change{
				Setting: name, Old: from, New: to, Restart: s.restart,
				Added: without(after[i].items(), s.items()), Removed: without(s.items(), after[i].items()),
			}
			sameItems := s.items() != nil && after[i].items() != nil && len(change.Added)+len(change.Removed) == 0
			if from == to || sameItems {
				continue
			}
			if s.hide != nil {
				change.Old, change.New = s.hide(from), s.hide(to)
			}
			changes = append(changes, change)
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
	return slices.DeleteFunc(slices.Clone(items), func(i string) bool { return known[i] })
}

// texts returns the value of a setting as the file has it, or of each member of a setting
// that is a group, by name.
func (s setting) texts() map[string]string {
	texts := map[string]string{}
	switch v := s.field.(type) {
	case *Plans:
		for _, p := range *v {
			texts[join(s.name, p.name)] = p.word
			if p.word == "" {
				texts[join(s.name, p.name)] = listText(quotaTexts(p.plan))
			}
		}
	case *map[string]deprecation.Options:
		for id, d := range *v {
			texts[join(s.name, id)] = deprecationText(d)
		}
	case *map[string]string:
		for id, marker := range *v {
			texts[join(s.name, id)] = marker
		}
	case *time.Duration:
		texts[s.name] = duration.Format(*v)
	case *slog.Level:
		texts[s.name] = strings.ToLower(v.String())
	case *Secret:
		texts[s.name] = v.Reveal()
	case *[]string:
		texts[s.name] = listText(*v)
		if s.plain {
			texts[s.name] = strings.Join(*v, ",")
		}
	case *[]netip.Prefix, **ratelimit.Plan:
		texts[s.name] = listText(s.items())
	default:
		texts[s.name] = fmt.Sprint(reflect.ValueOf(v).Elem())
	}
	return texts
}

// items returns the items of a list.
func (s setting) items() (items []string) {
	switch v := s.field.(type) {
	case *[]netip.Prefix:
		for _, p := range *v {
			items = append(items, p.String())
		}
	case **ratelimit.Plan:
		return quotaTexts(*v)
	case *[]string:
		if !s.plain {
			return *v
		}
	}
	return items
}

func listText(items []string) string { return "[" + strings.Join(items, ", ") + "]" }

func quotaTexts(p *ratelimit.Plan) (texts []string) {
	for _, q := range p.Quotas() {
		texts = append(texts, q.String())
	}
	return texts
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
