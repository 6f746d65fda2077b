package config

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/ratelimit"
)

// A value is what one setting is set to, as the file has it.
type value struct {
	name   string   // of the setting, or of one member of a group such as plans.free
	text   string   // of a list: "[a, b]"
	items  []string // of a list
	secret bool

	display string // the text without the secret in it; "": all of it can be shown
}

// shown returns the text without a secret: "[redacted]" if all of it is one.
func (v value) shown() string {
	switch {
	case v.secret:
		return Secret(v.text).String()
	case v.display != "":
		return v.display
	}
	return v.text
}

func one(name string, text func(*Config) string) func(*Config) []value {
	return func(c *Config) []value { return []value{{name: name, text: text(c)}} }
}

func secret(name string, text func(*Config) string) func(*Config) []value {
	return func(c *Config) []value { return []value{{name: name, text: text(c), secret: true}} }
}

func many(name string, items func(*Config) []string) func(*Config) []value {
	return func(c *Config) []value {
		list := items(c)
		return []value{{name: name, text: listText(list), items: list}}
	}
}

func listText(items []string) string { return "[" + strings.Join(items, ", ") + "]" }

func planValues(c *Config) []value {
	values := make([]value, len(c.Plans))
	for i, p := range c.Plans {
		values[i] = value{name: "plans." + p.name, text: p.Word()}
		if values[i].text == "" {
			values[i].text = listText(quotaTexts(p.plan))
		}
	}
	return values
}

func quotaTexts(p *ratelimit.Plan) []string {
	var texts []string
	for _, q := range p.Quotas() {
		texts = append(texts, q.String())
	}
	return texts
}

func prefixTexts(prefixes []netip.Prefix) []string {
	var texts []string
	for _, p := range prefixes {
		texts = append(texts, p.String())
	}
	return texts
}

func deprecationValues(c *Config) []value {
	var values []value
	for _, id := range slices.Sorted(maps.Keys(c.Deprecations)) {
		values = append(values, value{name: "deprecations." + id, text: deprecationText(c.Deprecations[id])})
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

// ShortDuration formats a duration without zero units: 24h and not 24h0m0s.
func ShortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
