package config

import (
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/ratelimit"
)

func TestExampleFileIsTheDefaults(t *testing.T) {
	path := filepath.Join("..", "..", "petstore.example.yaml")
	c, err := NewSource(Flags{"config": &path}, nil).Load()
	must(t, err)
	for _, s := range c.settings() {
		if c.places[s.name].line == 0 {
			t.Errorf("the example file does not show %s", s.name)
		}
	}
	wantSettings(t, "the example file", c, Default())
	if c.Penalty != ratelimit.DefaultPenalty() {
		t.Errorf("the default penalty is %+v", c.Penalty)
	}
}

func TestFile(t *testing.T) {
	c := mustLoad(t, `
draft_headers: true
first_key: false
on_redis_failure: closed
redis_shares: true
trusted_proxies: [10.0.0.0/8, "2001:db8::1"]
cors_origins: [https://app.example, "http://localhost:3000"]
penalty: {strikes: 3, grace: 500ms, decay: 1m, max: 2d}
plans:
  huge: custom
  tiny: [1_000/hour, 5/2s]
anonymous: [7/minute]
uncharged: [8/minute]
timeouts: {read_header: 1s, read: 2s, write: 4m, idle: 5s, store: 3m, drain: 1h}
log: {level: debug, format: text}
stability: {listPets: experimental}
servers: {production: https://pets.example/v1, staging: "http://staging.example:8080/api/v1"}
deprecations:
  listPets:
    since: 2026-01-01T12:00:00+02:00
    sunset: 2027-01-01
    successor: /v2/pets
    docs: https://docs.example/pets
    brownouts:
      - {start: 2026-12-01, end: 2026-12-01T01:00:00Z}
  createPet: {since: 2026-02-01}
`)
	want := Default()
	want.DraftHeaders, want.FirstKey, want.OnFailure, want.RedisShares = true, false, "closed", true
	want.HTTP.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::1/128")}
	want.CORSOrigins = []string{"https://app.example", "http://localhost:3000"}
	p := ratelimit.DefaultPenalty()
	p.Strikes, p.Grace, p.Decay, p.Max = 3, 500*time.Millisecond, time.Minute, 48*time.Hour
	want.Penalty = p
	want.Plans = Plans{
		{Name: "huge", Word: "custom", penalty: p},
		{Name: "tiny", Fixed: ratelimit.MustPlan("tiny", p, ratelimit.Quota{Limit: 5, Window: 2 * time.Second}, ratelimit.PerHour(1000))},
	}
	want.Anonymous = ratelimit.MustPlan("anonymous", p, ratelimit.PerMinute(7))
	want.Uncharged = ratelimit.MustPlan("uncharged", ratelimit.Penalty{}, ratelimit.PerMinute(8))
	h := &want.HTTP
	h.ReadHeaderTimeout, h.ReadTimeout, h.WriteTimeout, h.IdleTimeout, h.DrainTimeout = time.Second, 2*time.Second, 4*time.Minute, 5*time.Second, time.Hour
	want.StoreTimeout = 3 * time.Minute
	want.Log = Log{slog.LevelDebug, LogText}
	want.Stability = map[string]string{"listPets": "experimental"}
	want.Servers = Servers{"https://pets.example/v1", "http://staging.example:8080/api/v1"}
	day := func(y int, m time.Month, hour int) time.Time { return time.Date(y, m, 1, hour, 0, 0, 0, time.UTC) }
	want.Deprecations = map[string]deprecation.Options{
		"listPets": {
			Since: day(2026, 1, 10), Sunset: day(2027, 1, 0), Successor: "/v2/pets", Documentation: "https://docs.example/pets",
			Brownouts: []deprecation.Brownout{{Start: day(2026, 12, 0), End: day(2026, 12, 1)}},
		},
		"createPet": {Since: day(2026, 2, 0)},
	}
	wantSettings(t, "the file", c, want)
}

func TestStrangeFilesThatAreRead(t *testing.T) {
	for name, file := range map[string]string{
		"empty":                   "",
		"comments":                "# nothing\n\n# at all\n",
		"empty document":          "---\n...\n",
		"byte order mark":         "\ufefflisten: 127.0.0.1:8080\n",
		"CR LF":                   "listen: 127.0.0.1:8080\r\nplans:\r\n  free: [60/minute]\r\n",
		"JSON":                    `{"listen": "127.0.0.1:8080", "plans": {"free": ["60/minute"]}}`,
		"no line feed at the end": "listen: 127.0.0.1:8080",
	} {
		if _, err := fromFile(file); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if c := mustLoad(t, "deprecations: {}"); len(c.Deprecations) != 0 {
		t.Errorf("deprecations: {} leaves %v", c.Deprecations)
	}
}

func TestFileThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct{ name, path, want string }{
		{"missing", filepath.Join(dir, "none.yaml"), "no such file or directory"},
		{"folder", dir, "it is not a regular file"},
		{"too large", tempFile(t, strings.Repeat("#", maxFile+1)), "larger than 512 KiB"},
		{"not UTF-8", tempFile(t, "listen: \xff\n"), "this is not YAML: invalid leading UTF-8 octet"},
		{"control characters", tempFile(t, "listen: \x01\n"), "this is not YAML: control characters are not allowed"},
		{"deep brackets", tempFile(t, "a:\n"+strings.Repeat("[", maxFile/2)), ":2:1"},
		{"deep lists", tempFile(t, "a:\n"+strings.Repeat("- ", maxFile/4)+"a\n"), "this is not YAML: exceeded max depth"},
	} {
		_, err := NewSource(Flags{"config": &tt.path}, nil).Load()
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Count(err.Error(), tt.path) != 1 {
			t.Errorf("%s: Load = %v, want an error that names %s and says %q", tt.name, err, tt.path, tt.want)
		}
	}
}

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
		if err := c.Check(); err != nil || len(c.Plans) == 0 || c.Anonymous == nil {
			t.Errorf("settings that were accepted do not hold together: %v\n%+v", err, c)
		}
		for _, p := range c.Plans {
			var quotas []string
			if p.Fixed == nil {
				quotas = []string{"1/minute"}
			}
			if _, err := c.Plans.Of(p.Name, quotas); err != nil {
				t.Errorf("plan %s cannot be used: %v", p.Name, err)
			}
		}
	})
}
