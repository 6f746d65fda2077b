package config

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A file of any content is either read into settings that hold together or
// refused with errors that say where.
func FuzzLoad(f *testing.F) {
	example, err := os.ReadFile(filepath.Join("..", "..", "petstore.example.yaml"))
	must(f, err)
	f.Add(string(example))
	for _, seed := range []string{
		"", "listen: 127.0.0.1:1", "listen: [", "a: &a [*a]", "? a\n: b", "<<: {}", "plans: {a: [1/day], b: custom}",
		"penalty: {strikes: 0}", "deprecations: {x: {since: 2025-01-01, brownouts: [{start: 2025-01-02}]}}",
		"trusted_proxies: [::1]", "redis: redis://a,redis://b", "x: |\n  y\n", "x: !!binary aa", "- a", "\t", "%YAML 1.2\n---\n",
		strings.Repeat("[", 200), strings.Repeat("a: {", 100), "draft_headers: .inf", "listen: ''''",
	} {
		f.Add(seed)
	}
	where := regexp.MustCompile(`^(petstore\.yaml(:[1-9][0-9]*:[1-9][0-9]*)?|default): `)
	f.Fuzz(func(t *testing.T, content string) {
		c, err := fromFile(content)
		if err != nil {
			if !where.MatchString(err.Error()) {
				t.Errorf("an error does not say where: %v", err)
			}
			return
		}
		var r report
		c.check(&r)
		if len(r.mistakes) > 0 || len(c.Plans) == 0 || c.Anonymous == nil {
			t.Errorf("settings that were accepted do not hold together: %v\n%+v", r.err(), c)
		}
		for _, p := range c.Plans {
			var quotas []string
			if p.Custom() {
				quotas = []string{"1/minute"}
			}
			if _, err := c.Plans.Of(p.Name(), quotas); err != nil {
				t.Errorf("plan %s cannot be used: %v", p.Name(), err)
			}
		}
	})
}
