package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChanges(t *testing.T) {
	for _, tt := range []struct {
		name     string
		old, new string
		want     []Change
	}{
		{"nothing", "listen: 127.0.0.1:1", "# the same\nlisten: '127.0.0.1:1'", nil},
		{"text", "tls_cert: a\ntls_key: b", "tls_cert: c\ntls_key: b", []Change{{Setting: "tls_cert", Old: "a", New: "c"}}},
		{"a plan", "plans: {free: [60/minute, 1000/day], gone: custom}", "plans: {free: [2/minute], new: custom}", []Change{
			{Setting: "plans.free", Old: "[60/minute, 1000/day]", New: "[2/minute]"},
			{Setting: "plans.gone", Old: "custom"},
			{Setting: "plans.new", New: "custom"},
		}},
		{"the penalty", "", "penalty: {ban: 90s, strikes: 3}", []Change{
			{Setting: "penalty.strikes", Old: "10", New: "3"}, {Setting: "penalty.ban", Old: "1m", New: "90s"},
		}},
		{"lists", "cors_origins: [https://a.example, https://b.example]", "cors_origins: [https://b.example, https://c.example]\ntrusted_proxies: [10.0.0.1]", []Change{
			{Setting: "trusted_proxies", New: "10.0.0.1"},
			{Setting: "cors_origins", Old: "https://a.example", New: "https://c.example"},
		}},
		{"the order of a list", "cors_origins: [https://a.example, https://b.example]\nanonymous: [1/day, 2/minute]", "cors_origins: [https://b.example, https://a.example, https://b.example]\nanonymous: [2/minute, 1/day]", nil},
		{"stability", "", "stability: {getUsage: experimental, getPet: beta}\nservers: {staging: https://a.example/v1}", []Change{
			{Setting: "stability.getPet", New: "beta"}, {Setting: "stability.getUsage", Old: "beta", New: "experimental"},
			{Setting: "servers.staging", New: "https://a.example/v1"},
		}},
		{"deprecations", "", "deprecations: {getUsage: {since: 2026-01-02T03:00:00Z, sunset: 2031-01-01, docs: /docs, brownouts: [{start: 2030-01-01, end: 2030-01-02}]}}", []Change{
			{Setting: "deprecations.getPet", Old: `{since: 2025-12-05, sunset: 2030-12-05, successor: /v1/pets?status=available}`},
			{Setting: "deprecations.getUsage", New: `{since: 2026-01-02T03:00:00Z, sunset: 2031-01-01, docs: /docs, brownouts: [{start: 2030-01-01, end: 2030-01-02}]}`},
		}},
		{"what needs a restart", "", "listen: 127.0.0.1:1\nadmin_listen: ''\ndatabase: b.db\non_redis_failure: open", []Change{
			{Setting: "listen", Old: "127.0.0.1:8080", New: "127.0.0.1:1", Restart: true},
			{Setting: "admin_listen", Old: "127.0.0.1:9090", Restart: true},
			{Setting: "database", Old: "petstore.db", New: "b.db", Restart: true},
			{Setting: "on_redis_failure", Old: "local", New: "open", Restart: true},
		}},
		{"secrets", "admin_token: hushhushhushhush\nredis: redis://:hush@a:1", "admin_token: hush-hush-hush-hush", []Change{
			{Setting: "admin_token", Old: "[redacted]", New: "[redacted]", Restart: true},
			{Setting: "redis", Old: "[redacted]", Restart: true},
		}},
		{"password of a database", "database: postgres://u:hush@h/d\nredis: redis://h", "database: postgres://u:mush@h/d\nredis: redis://h", []Change{
			{Setting: "database", Old: "postgres://u@h/d", New: "postgres://u@h/d", Restart: true},
		}},
	} {
		got := mustLoad(t, tt.old).Changes(mustLoad(t, tt.new))
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: changes (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestAfterKeepsWhatNeedsARestart(t *testing.T) {
	running := mustLoad(t, "listen: 127.0.0.1:1\ndatabase: a.db")
	next := mustLoad(t, "\nlisten: 127.0.0.1:2\nadmin_listen: ''\ndraft_headers: true")
	merged, err := running.After(next)
	must(t, err)
	if merged.Listen != "127.0.0.1:1" || merged.Database != "a.db" || merged.AdminListen != "127.0.0.1:9090" || !merged.DraftHeaders {
		t.Errorf("the settings are %+v, want the new ones with the addresses and the database of the running server", merged)
	}
	for setting, want := range map[string]string{
		"listen": "petstore.yaml:1:9", "database": "petstore.yaml:2:11", "admin_listen": "default", "draft_headers": "petstore.yaml:4:16",
	} {
		if got := merged.Where(setting); got != want {
			t.Errorf("%s is from %s, want %s", setting, got, want)
		}
	}
	if next.Listen != "127.0.0.1:2" || next.Where("listen") != "petstore.yaml:2:9" {
		t.Error("After has changed the settings that were read")
	}
}

func TestAfterKeepsEachSettingThatNeedsARestart(t *testing.T) {
	running := mustLoad(t, "")
	next := mustLoad(t, "listen: 127.0.0.1:1\nadmin_listen: ''\nadmin_token: hush-hush-hush-hush\ndatabase: b.db\nmigrate: manual\nfirst_key: false\nusage_file: u\n"+
		"timeouts: {read_header: 1s, read: 2s, write: 1m, idle: 1s}\nredis: redis://h\non_redis_failure: open\nredis_shares: true\nlog: {format: text, level: warn}")
	merged, err := running.After(next)
	must(t, err)
	want := []Change{{Setting: "log.level", Old: "info", New: "warn"}}
	if diff := cmp.Diff(want, running.Changes(merged)); diff != "" {
		t.Errorf("changes of the running server (-want +got):\n%s", diff)
	}
	restart := 0
	for _, c := range running.Changes(next) {
		if c.Restart {
			restart++
		}
	}
	for _, s := range new(Config).settings() {
		if s.restart {
			restart--
		}
	}
	if restart != 0 {
		t.Error("the file of this test does not change each setting that needs a restart")
	}
}

// A file that could be served after a restart must not leave the running server with
// settings that contradict each other.
func TestAfterRefusesContradictions(t *testing.T) {
	running := mustLoad(t, "listen: 10.0.0.5:80\ntrusted_proxies: [10.0.0.0/24]")
	_, err := running.After(mustLoad(t, "listen: 127.0.0.1:80"))
	if got := errorText(err); !strings.HasPrefix(got, "petstore.yaml:1:9: listen: other machines can reach 10.0.0.5:80") {
		t.Errorf("After = %q, want an error about the address that is in use", got)
	}
	_, err = mustLoad(t, "").After(mustLoad(t, "timeouts: {write: 2m, store: 1m}"))
	if got, want := errorText(err), "petstore.yaml:1:30: timeouts.store: timeouts.store (1m) must be shorter than timeouts.write (30s)"; got != want {
		t.Errorf("After = %q, want %q: timeouts.write needs a restart", got, want)
	}
}

func TestAfterRefusesToTurnTLSOnOrOff(t *testing.T) {
	off, on := mustLoad(t, ""), mustLoad(t, "tls_cert: a\ntls_key: b")
	for want, err := range map[string]error{
		"petstore.yaml:1:11: tls_cert: turning TLS on or off needs a restart": second(off.After(on)),
		"tls_cert: turning TLS on or off needs a restart":                     second(on.After(off)),
	} {
		if got := errorText(err); got != want {
			t.Errorf("After = %q, want %q", got, want)
		}
	}
}

func second(_ *Config, err error) error { return err }
