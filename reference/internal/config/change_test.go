package config

import (
	"slices"
	"strings"
	"testing"
)

func TestChanges(t *testing.T) {
	for _, tt := range []struct{ old, new, applied, restart string }{
		{"listen: 127.0.0.1:1", "# the same\nlisten: '127.0.0.1:1'", "", ""},
		{"tls_cert: a\ntls_key: b", "tls_cert: c\ntls_key: b", "tls_cert", ""},
		{"plans: {free: [60/minute], gone: custom}", "plans: {free: [2/minute]}", "plans", ""},
		{"anonymous: [1/day, 2/minute]", "anonymous: [2/minute, 1/day]", "", ""},
		{"", "penalty: {ban: 90s, strikes: 3}", "penalty.strikes penalty.ban", ""},
		{"trusted_proxies: [10.0.0.1]", "cors_origins: [https://a.example]", "trusted_proxies cors_origins", ""},
		{"stability: {getUsage: beta}", "stability: {getUsage: experimental}\nservers: {staging: https://a.example/v1}", "stability servers.staging", ""},
		{"", "deprecations: {getUsage: {since: 2026-01-02T03:00:00Z}}", "deprecations", ""},
		{"admin_token: hushhushhushhush\nredis: redis://:hush@a:1", "admin_token: hush-hush-hush-hush\ndrain_delay: 1s", "drain_delay", "admin_token redis"},
	} {
		applied, restart := mustLoad(t, tt.old).Changes(mustLoad(t, tt.new))
		if got := strings.Join(applied, " "); got != tt.applied || strings.Join(restart, " ") != tt.restart {
			t.Errorf("from %q to %q: %s change, and %s need a restart; want %q and %q", tt.old, tt.new, got, restart, tt.applied, tt.restart)
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
	applied, kept := running.Changes(merged)
	if !slices.Equal(applied, []string{"log.level"}) || len(kept) > 0 {
		t.Errorf("the running server changes %q and %q, want log.level alone", applied, kept)
	}
	var want []string
	for _, s := range new(Config).settings() {
		if s.restart {
			want = append(want, s.name)
		}
	}
	if _, restart := running.Changes(next); !slices.Equal(restart, want) {
		t.Errorf("the file changes %q, want each setting that needs a restart: %q", restart, want)
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
