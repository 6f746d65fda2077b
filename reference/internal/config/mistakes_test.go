package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each mistake is named with file, line and column, the setting, and how to mend
// it.
func TestMistakesInTheFile(t *testing.T) {
	for _, tt := range []struct {
		name string
		file string
		want []string // lines, without "petstore.yaml:"; … stands for any rest
	}{
		{"unknown setting", "lisen: 127.0.0.1:8080\n", []string{
			"1:1: lisen: there is no such setting; want one of admin_listen, admin_token, anonymous, cors_origins, database, deprecations, draft_headers, drain_delay, listen, max_connections, max_connections_per_network, on_redis_failure, penalty, plans, redis, tls_cert, tls_key, trusted_proxies, uncharged",
		}},
		{"setting in another case", "\nListen: 127.0.0.1:8080\n", []string{
			"2:1: Listen: there is no such setting; want one of admin_listen, admin_token, anonymous, cors_origins, database, deprecations, draft_headers, drain_delay, listen, max_connections, max_connections_per_network, on_redis_failure, penalty, plans, redis, tls_cert, tls_key, trusted_proxies, uncharged",
		}},
		{"given twice", "listen: 127.0.0.1:1\ndatabase: a.db\nlisten: 127.0.0.1:2\n", []string{
			"3:1: listen: is given twice, first in line 1; keep one",
		}},
		{"plan given twice", "plans:\n  free: [1/day]\n  free: [2/day]\n", []string{
			"3:3: plans.free: is given twice, first in line 2; keep one",
		}},
		{"no value", "listen:\ndatabase: ~\n", []string{
			"1:8: listen: has no value; want text, or leave the line out",
			"2:11: database: has no value; want text, or leave the line out",
		}},
		{"number for text", "listen: 8080\n", []string{
			"1:9: listen: is a number; want text (text that looks like something else goes in quotes)",
		}},
		{"list for text", "database: [a, b]\n", []string{
			"1:11: database: is a list; want text",
		}},
		{"text for true", "draft_headers: \"true\"\n", []string{
			"1:16: draft_headers: is text; want true or false",
		}},
		{"word of old YAML for true", "draft_headers: yes\n", []string{
			"1:16: draft_headers: is text; want true or false",
		}},
		{"address without port", "listen: 127.0.0.1\n", []string{
			`1:9: listen: "127.0.0.1" is not host and port, such as 127.0.0.1:8080`,
		}},
		{"port out of range", "admin_listen: 127.0.0.1:65536\n", []string{
			`1:15: admin_listen: port "65536" is not a number from 0 to 65535`,
		}},
		{"port by name", "listen: 127.0.0.1:http\n", []string{
			`1:9: listen: port "http" is not a number from 0 to 65535`,
		}},
		{"URL for an address", "listen: http://127.0.0.1:80\n", []string{
			`1:9: listen: "http://127.0.0.1:80" is not host and port, such as 127.0.0.1:8080`,
		}},
		{"count", "max_connections: 0\nmax_connections_per_network: 1.5\n", []string{
			`1:18: max_connections: must be a whole number from 1 to 16777216, got "0"`,
			`2:30: max_connections_per_network: must be a whole number from 1 to 16777216, got "1.5"`,
		}},
		{"count in words", "max_connections: many\n", []string{
			"1:18: max_connections: is text; want a whole number",
		}},
		{"delay", "drain_delay: 10\n", []string{
			"1:14: drain_delay: is a number; want a duration such as 10s",
		}},
		{"delay without a unit", "drain_delay: '10'\n", []string{
			`1:14: drain_delay: must be a duration from 0s to 1h such as 10s, got "10"`,
		}},
		{"delay that is too long", "drain_delay: 61m\n", []string{
			`1:14: drain_delay: must be a duration from 0s to 1h such as 10s, got "61m"`,
		}},
		{"choice", "on_redis_failure: fallback\n", []string{
			`1:19: on_redis_failure: must be local, open or closed, got "fallback"`,
		}},
		{"database at a URL", "database: postgres://u:hush@host/db\n", []string{
			"1:11: database: must be a SQLite file such as petstore.db, got a URL; PostgreSQL is not supported yet",
		}},
		{"Redis without scheme", "redis: redis://a:1,b:2\n", []string{
			"1:8: redis: address 2 is not a URL such as redis://host:6379 (several are separated by commas)",
		}},
		{"token that no header can carry", "admin_token: 'correct horse battery staple!'\n", []string{
			"1:14: admin_token: want letters, digits and - . _ ~ + / only, with = at most at the end, as a bearer token has to be (RFC 6750)",
		}},
		{"short token", "admin_token: hush\n", []string{
			"1:14: admin_token: want at least 16 characters, chosen at random",
		}},
		{"certificate alone", "tls_cert: cert.pem\n", []string{
			"1:11: tls_cert: is given without tls_key; TLS needs both",
		}},
		{"key alone", "tls_key: key.pem\n", []string{
			"1:10: tls_key: is given without tls_cert; TLS needs both",
		}},
		{"one address for two listeners", "listen: 127.0.0.1:9090\n", []string{
			"1:9: listen: the API and the admin listener cannot both be at 127.0.0.1:9090",
		}},

		{"quota", "plans:\n  free: [60/minute, 1000/dya]\n", []string{
			`2:21: plans.free[1]: quota "1000/dya": …`,
		}},
		{"quota of nothing", "plans:\n  free:\n    - 0/minute\n", []string{
			`3:7: plans.free[0]: quota "0/minute": …`,
		}},
		{"two quotas with one window", "anonymous: [1/minute, 2/60s]\n", []string{
			"1:23: anonymous[1]: a second quota …",
		}},
		{"too many quotas", "anonymous: [1/1s, 1/2s, 1/3s, 1/4s, 1/5s]\n", []string{
			"1:37: anonymous[4]: 5 quotas…",
		}},
		{"no quota", "plans: {free: []}\n", []string{
			"1:15: plans.free: has no quota; want a list of quotas such as [60/minute, 1000/day], or custom",
		}},
		{"quota without list", "plans: {free: 60/minute}\n", []string{
			"1:15: plans.free: is text; want a list of quotas such as [60/minute, 1000/day], or custom",
		}},
		{"number for a quota", "anonymous: [60]\n", []string{
			"1:13: anonymous[0]: is a number; want text, as in a list of quotas such as [60/minute, 1000/day] (text that looks like something else goes in quotes)",
		}},
		{"custom for callers without a key", "anonymous: custom\n", []string{
			"1:12: anonymous: is text; want a list of quotas such as [60/minute, 1000/day]",
		}},
		{"no plans", "plans: {}\n", []string{
			"1:8: plans: names no plan, so that no key could have one",
		}},
		{"plan names", "plans:\n  Free: [1/day]\n  anonymous: [1/day]\n", []string{
			"2:3: plans.Free: a plan's name is a lower-case letter and up to 62 lower-case letters, digits, - and _",
			"3:3: plans.anonymous: is the plan of callers without a key; it stands outside plans",
		}},
		{"number for a plan's name", "plans:\n  1: [1/day]\n  free: [1/day]\n", []string{
			"2:3: plans: want a name before the colon; one that is a number or a word of YAML's goes in quotes",
		}},

		{"penalty member", "penalty: {strike: 10}\n", []string{
			"1:11: penalty.strike: there is no such setting; want one of ban, decay, forgive, grace, growth, max, strikes",
		}},
		{"penalty out of range", "penalty: {strikes: 10001}\n", []string{
			"1:20: penalty.strikes: …",
		}},
		{"decay out of range", "penalty: {decay: 1500ms}\n", []string{
			"1:18: penalty.decay: decay 1.5s is not from 1s to …",
		}},
		{"decay of nothing", "penalty: {decay: 0s}\n", []string{
			"1:18: penalty.decay: decay 0s is not from 1s to …",
		}},
		{"penalty that contradicts itself", "penalty: {ban: 2h, max: 1h}\n", []string{
			"1:25: penalty.max: …",
		}},
		{"penalty that contradicts the defaults", "penalty: {ban: 25h}\n", []string{
			"1:10: penalty: …",
		}},
		{"number for a duration", "penalty: {ban: 60}\n", []string{
			"1:16: penalty.ban: is a number; want a duration such as 90s, 1m or 24h",
		}},
		{"duration in days", "penalty: {max: 1d}\n", []string{
			`1:16: penalty.max: "1d" is not a duration such as 90s, 1m or 24h`,
		}},
		{"fraction", "penalty: {strikes: 1.5}\n", []string{
			"1:20: penalty.strikes: 1.5 is not a whole number in decimal digits, or too large",
		}},
		{"octal", "penalty: {strikes: 010}\n", []string{
			"1:20: penalty.strikes: 010 is not a whole number in decimal digits, or too large",
		}},

		{"proxy by name", "trusted_proxies: [10.0.0.0/8, proxy.example]\n", []string{
			`1:31: trusted_proxies[1]: "proxy.example" is neither…`,
		}},
		{"everybody a proxy", "trusted_proxies: [0.0.0.0/0]\n", []string{
			"1:19: trusted_proxies[0]: 0.0.0.0/0 covers every address…",
		}},
		{"proxy without list", "trusted_proxies: 10.0.0.0/8\n", []string{
			"1:18: trusted_proxies: is text; want a list of networks such as [10.0.0.0/8]",
		}},
		{"any origin", "cors_origins: [\"*\"]\n", []string{
			`1:16: cors_origins[0]: "*" is not an origin such as https://app.example: scheme, host in lower case, and the port if it is not the usual one`,
		}},
		{"origin with a path", "cors_origins:\n  - https://app.example\n  - https://app.example/\n", []string{
			`3:5: cors_origins[1]: "https://app.example/" is not an origin such as https://app.example: scheme, host in lower case, and the port if it is not the usual one`,
		}},

		{"deprecation without a date", "deprecations:\n  getPet: {sunset: 2030-12-05}\n", []string{
			"2:11: deprecations.getPet: want since, the date from which on the operation is deprecated",
		}},
		{"sunset before deprecation", "deprecations:\n  getPet: {since: 2025-12-05, sunset: 2024-12-05}\n", []string{
			"2:39: deprecations.getPet.sunset: …",
		}},
		{"impossible date", "deprecations:\n  getPet: {since: 2025-02-30}\n", []string{
			`2:19: deprecations.getPet.since: "2025-02-30" is not a date such as 2030-12-05, or a time such as 2030-12-05T12:00:00Z`,
		}},
		{"successor that is no target", "deprecations:\n  getPet: {since: 2025-12-05, successor: pets}\n", []string{
			"2:42: deprecations.getPet.successor: …",
		}},
		{"brownout after the sunset", "deprecations:\n  getPet:\n    since: 2025-12-05\n    sunset: 2030-12-05\n    brownouts:\n      - {start: 2030-12-01, end: 2030-12-02}\n      - {start: 2030-12-04, end: 2030-12-06}\n", []string{
			"7:9: deprecations.getPet.brownouts[1]: …",
		}},
		{"brownout member", "deprecations:\n  getPet:\n    since: 2025-12-05\n    brownouts: [{from: 2030-12-01}]\n", []string{
			"4:18: deprecations.getPet.brownouts[0].from: there is no such setting; want one of end, start",
		}},

		{"not YAML", "listen: [127.0.0.1\n", []string{
			"1:9: the file is not YAML: …",
		}},
		{"tab", "plans:\n\tfree: [1/day]\n", []string{
			"2:1: the file is not YAML: …",
		}},
		{"not settings", "- listen\n", []string{
			`1:1: want settings such as "listen: 127.0.0.1:8080", one a line`,
		}},
		{"two documents", "listen: 127.0.0.1:1\n---\ndatabase: a\n", []string{
			"3:9: a second document begins here; put everything into one",
		}},
		{"reference", "database: &a x.db\ntls_cert: *a\n", []string{
			"1:11: database: references (& and *) are not supported; write the value out",
			"2:11: tls_cert: references (& and *) are not supported; write the value out",
		}},
		{"merge", "penalty: {<<: {strikes: 1}}\n", []string{
			"1:11: penalty: want a name before the colon; one that is a number or a word of YAML's goes in quotes",
		}},
		{"type", "database: !!str 5\n", []string{
			"1:11: database: types (!) are not supported; write the value alone",
		}},

		{"all at once, in the order of the file", "lisen: x\npenalty: {strikes: x}\nplans:\n  free: [1/x]\n  pro: [2/y]\nlisten: 1\n", []string{
			"1:1: lisen: there is no such setting; want one of admin_listen, admin_token, anonymous, cors_origins, database, deprecations, draft_headers, drain_delay, listen, max_connections, max_connections_per_network, on_redis_failure, penalty, plans, redis, tls_cert, tls_key, trusted_proxies, uncharged",
			"2:20: penalty.strikes: is text; want a whole number",
			`4:10: plans.free[0]: quota "1/x": …`,
			`5:9: plans.pro[0]: quota "2/y": …`,
			"6:9: listen: is a number; want text (text that looks like something else goes in quotes)",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := fromFile(tt.file)
			if err == nil {
				t.Fatalf("load of\n%s\nsucceeded, want an error", tt.file)
			}
			got := strings.Split(err.Error(), "\n")
			for i, line := range got {
				got[i] = strings.TrimPrefix(line, "petstore.yaml:")
				if i < len(tt.want) && matches(tt.want[i], got[i]) {
					got[i] = tt.want[i]
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("load of\n%s\n(-want +got):\n%s", tt.file, diff)
			}
		})
	}
}

func TestManyMistakesAreCounted(t *testing.T) {
	_, err := fromFile("a: 1\n" + strings.Repeat("a: 1\n", 100))
	lines := strings.Split(errorText(err), "\n")
	if len(lines) != 21 || lines[20] != "and 81 mistakes more" {
		t.Errorf("of 101 mistakes %d lines are told, the last %q, want 20 and a count of the rest", len(lines), lines[len(lines)-1])
	}
}

func TestMistakesOutsideTheFile(t *testing.T) {
	text := func(s string) *string { return &s }
	for _, tt := range []struct {
		name  string
		file  string
		flags Flags
		env   map[string]string
		want  string
	}{
		{"environment", "", Flags{}, map[string]string{"PETSTORE_LISTEN": "8080"},
			`PETSTORE_LISTEN: listen: "8080" is not host and port, such as 127.0.0.1:8080`},
		{"flag", "", Flags{AdminListen: text("9090")}, nil,
			`--admin-listen: admin_listen: "9090" is not host and port, such as 127.0.0.1:8080`},
		{"empty database", "", Flags{Database: text("")}, nil,
			"--database: database: must be a SQLite file such as petstore.db, got nothing"},
		{"a setting that a flag makes wrong", "tls_cert: c\ntls_key: k\n", Flags{TLSCert: text("")}, nil,
			"petstore.yaml:2:10: tls_key: is given without tls_cert; TLS needs both"},
		{"the file first", "listen: 1\n", Flags{TLSCert: text("c"), Database: text("")}, map[string]string{"PETSTORE_REDIS": "x"},
			"petstore.yaml:1:9: listen: is a number; want text (text that looks like something else goes in quotes)\n" +
				"--database: database: must be a SQLite file such as petstore.db, got nothing\n" +
				"PETSTORE_REDIS: redis: address 1 is not a URL such as redis://host:6379 (several are separated by commas)"},
	} {
		_, err := load("petstore.yaml", []byte(tt.file), tt.flags, environ(tt.env))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s: error is\n%v\nwant\n%s", tt.name, err, tt.want)
		}
	}
}

func TestPublicAddressNeedsTLS(t *testing.T) {
	for _, tt := range []struct {
		file string
		ok   bool
	}{
		{"listen: 127.0.0.1:80", true},
		{"listen: 127.9.9.9:80", true},
		{"listen: '[::1]:80'", true},
		{"listen: '[::ffff:127.0.0.1]:80'", true},
		{"listen: localhost:80", true},
		{"listen: ':80'", false},
		{"listen: 0.0.0.0:80", false},
		{"listen: '[::]:80'", false},
		{"listen: 10.0.0.1:80", false},
		{"listen: localhost.example:80", false},
		{"listen: pets.example:80", false},
		{"listen: ':80'\ntls_cert: c\ntls_key: k", true},
		{"listen: ':80'\ntrusted_proxies: [10.0.0.0/8]", true},
		{"listen: ':80'\ntrusted_proxies: []", false},
	} {
		_, err := fromFile(tt.file)
		const want = "keys would cross the network in clear text; set tls_cert and tls_key, name the proxies that bring TLS in trusted_proxies, or listen on 127.0.0.1"
		switch {
		case tt.ok && err != nil:
			t.Errorf("%s: %v, want no error", tt.file, err)
		case !tt.ok && (err == nil || !strings.HasPrefix(err.Error(), "petstore.yaml:1:9: listen: ") || !strings.HasSuffix(err.Error(), want)):
			t.Errorf("%s: %v, want an error that names the line and says how to mend it", tt.file, err)
		}
	}
}

func TestPublicAdminListenerNeedsAToken(t *testing.T) {
	for _, tt := range []struct {
		file string
		want string
	}{
		{"admin_listen: ''", ""},
		{"admin_listen: 127.0.0.1:1", ""},
		{"admin_listen: 127.0.0.1:0\nlisten: 127.0.0.1:0", ""},
		{"admin_listen: ':9090'\nadmin_token: 0123456789abcdeF", ""},
		{"admin_listen: ':9090'", "petstore.yaml:1:15: admin_listen: other machines can reach :9090; set admin_token (PETSTORE_ADMIN_TOKEN), or listen on 127.0.0.1"},
	} {
		_, err := fromFile(tt.file)
		if got := errorText(err); got != tt.want {
			t.Errorf("%s: error is %q, want %q", tt.file, got, tt.want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestErrorsRepeatNoSecret(t *testing.T) {
	const secret = "hush"
	for _, file := range []string{
		"admin_token: hush",
		"admin_token: [hush]",
		"admin_token: 'hush hush hush hush'",
		"database: mysql://u:hush@h/d",
		"database: 'postgres://u:hush@/d'",
		"redis: 'http://u:hush@h'",
		"redis: 'redis://u:hush@h:port'",
		"redis: 'redis://ok,hush'",
	} {
		_, err := fromFile(file)
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: error is %v, want one that does not repeat the secret", file, err)
		}
	}
}
