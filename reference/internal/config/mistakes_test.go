package config

import (
	"strings"
	"testing"
)

// Each mistake is reported with file, line and column, the setting, and how to fix it.
func TestMistakesInTheFile(t *testing.T) {
	for _, tt := range []struct {
		name string
		file string
		want string // lines, without "petstore.yaml:"; … stands for any rest
	}{
		{"unknown setting", "lisen: 127.0.0.1:8080\n",
			"1:1: lisen: unknown setting; reference/docs/CONFIGURATION.md lists all"},
		{"setting in another case", "\nListen: 127.0.0.1:8080\n",
			"2:1: Listen: unknown setting; reference/docs/CONFIGURATION.md lists all"},
		{"given twice", "listen: 127.0.0.1:1\ndatabase: a.db\nlisten: 127.0.0.1:2\n",
			"3:1: listen: is set twice, first in line 1; remove one"},
		{"plan given twice", "plans:\n  free: [1/day]\n  free: [2/day]\n",
			"3:3: plans.free: is set twice, first in line 2; remove one"},
		{"no value", "listen:\ndatabase: ~\n",
			"1:8: listen: must be a single value, got nothing; to keep the default, remove the line\n" +
				"2:11: database: must be a single value, got nothing; to keep the default, remove the line"},
		{"every part of a penalty", "penalty: {decay: 0s, ban: 0s}\n",
			"1:18: penalty.decay: must be whole seconds from 1s to 8784h, got 0s"},
		{"number for text", "listen: 8080\n",
			`1:9: listen: must be host and port such as 127.0.0.1:8080, got "8080"`},
		{"list for text", "database: [a, b]\n",
			"1:11: database: must be a single value, got a list"},
		{"word of old YAML for true", "draft_headers: yes\n",
			`1:16: draft_headers: must be true or false, got "yes"`},
		{"address without port", "listen: 127.0.0.1\n",
			`1:9: listen: must be host and port such as 127.0.0.1:8080, got "127.0.0.1"`},
		{"port out of range", "admin_listen: 127.0.0.1:65536\n",
			`1:15: admin_listen: must have a port from 0 to 65535, got "65536"`},
		{"port by name", "listen: 127.0.0.1:http\n",
			`1:9: listen: must have a port from 0 to 65535, got "http"`},
		{"count", "max_connections: 0\nmax_connections_per_network: 1.5\n",
			`1:18: max_connections: must be a whole number from 1 to 16777216, got "0"` + "\n" +
				`2:30: max_connections_per_network: must be a whole number from 1 to 16777216, got "1.5"`},
		{"delay without a unit", "drain_delay: 10\n",
			`1:14: drain_delay: must be a duration from 0s to 1h such as 10s, got "10"`},
		{"delay that is too long", "drain_delay: 61m\n",
			`1:14: drain_delay: must be a duration from 0s to 1h such as 10s, got "61m"`},
		{"choice", "on_redis_failure: fallback\n",
			`1:19: on_redis_failure: must be local, open or closed, got "fallback"`},
		{"database at a URL of something else", "database: mysql://u:hush@host/db\n",
			"1:11: database: must be a SQLite file such as petstore.db, or a postgres:// URL, got another URL"},
		{"database in keywords", "database: host=db.example user=ada password=hush\n",
			"1:11: database: must be a SQLite file such as petstore.db, or a postgres:// URL, got keywords and values"},
		{"password that is not encoded", "database: postgres://u:1/hush@host/db\n",
			"1:11: database: must be a URL such as postgres://user:password@host:5432/database; …"},
		{"way to migrate", "migrate: never\n",
			`1:10: migrate: must be auto or manual, got "never"`},
		{"Redis without scheme", "redis: redis://a:1,b:2\n",
			"1:8: redis: must be URLs such as redis://host:6379, separated by commas; address 2 is not one"},
		{"token that no header can carry", "admin_token: 'correct horse battery staple!'\n",
			"1:14: admin_token: must have only letters, digits and - . _ ~ + /, and = only at the end (RFC 6750 section 2.1)"},
		{"short token", "admin_token: hush\n",
			"1:14: admin_token: must have at least 16 random characters, got 4"},
		{"certificate alone", "tls_cert: cert.pem\n",
			"1:11: tls_cert: needs tls_key, which is not set"},
		{"key alone", "tls_key: key.pem\n",
			"1:10: tls_key: needs tls_cert, which is not set"},
		{"one address for two listeners", "listen: 127.0.0.1:9090\n",
			"1:9: listen: the API and the admin listener cannot both use 127.0.0.1:9090; change one of them"},

		{"quota", "plans:\n  free: [60/minute, 1000/dya]\n",
			`2:21: plans.free[1]: quota "1000/dya": …`},
		{"quota of nothing", "plans:\n  free:\n    - 0/minute\n",
			`3:7: plans.free[0]: quota "0/minute": …`},
		{"two quotas with one window", "anonymous: [1/minute, 2/60s]\n",
			"1:23: anonymous[1]: a second quota …"},
		{"too many quotas", "anonymous: [1/1s, 1/2s, 1/3s, 1/4s, 1/5s]\n",
			"1:37: anonymous[4]: a plan must have 1 to 4 quotas, got 5"},
		{"no quota", "plans: {free: []}\n",
			"1:15: plans.free: must be a list of quotas such as [60/minute, 1000/day], or custom, suspended or unlimited, got an empty list"},
		{"quota without list", "plans: {free: 60/minute}\n",
			"1:15: plans.free: must be a list of quotas such as [60/minute, 1000/day], or custom, suspended or unlimited, got a single value"},
		{"custom for callers without a key", "anonymous: custom\n",
			"1:12: anonymous: must be a list of quotas such as [60/minute, 1000/day], got a single value"},
		{"no plans", "plans: {}\n",
			"1:8: plans: must have at least one plan, got none"},
		{"plan names", "plans:\n  Free: [1/day]\n  anonymous: [1/day]\n",
			"2:3: plans.Free: the name of a plan must be a lower-case letter and up to 62 lower-case letters, digits, - and _\n" +
				"3:3: plans.anonymous: is the plan of callers without a key; move it out of plans"},
		{"number for a plan's name", "plans:\n  1: [1/day]\n  free: [1/day]\n",
			"2:3: plans: must have a name before the colon; put a name that is a number or a YAML word in quotes"},

		{"penalty member", "penalty: {strike: 10}\n",
			"1:11: penalty.strike: unknown setting; reference/docs/CONFIGURATION.md lists all"},
		{"penalty out of range", "penalty: {strikes: 10001}\n",
			"1:20: penalty.strikes: must be a whole number from 0 to 10000, got \"10001\""},
		{"penalty that contradicts itself", "penalty: {ban: 2h, max: 1h}\n",
			"1:25: penalty.max: must be whole seconds from penalty.ban (2h) to 8784h, got 1h"},
		{"penalty that contradicts the defaults", "penalty: {ban: 25h}\n",
			"1:10: penalty.max: must be whole seconds from penalty.ban (25h) to 8784h, got 24h"},
		{"number for a duration", "penalty: {ban: 60}\n",
			`1:16: penalty.ban: must be a duration from 0s to 8784h such as 10s, got "60"`},
		{"duration in weeks", "penalty: {max: 1w}\n",
			`1:16: penalty.max: must be a duration from 0s to 8784h such as 10s, got "1w"`},
		{"fraction", "penalty: {strikes: 1.5}\n",
			`1:20: penalty.strikes: must be a whole number from 0 to 10000, got "1.5"`},
		{"octal", "penalty: {strikes: 010}\n",
			`1:20: penalty.strikes: must be a whole number from 0 to 10000, got "010"`},

		{"proxy by name", "trusted_proxies: [10.0.0.0/8, proxy.example]\n",
			`1:31: trusted_proxies[1]: "proxy.example" must be a network such as 10.0.0.0/8 or an address`},
		{"everybody a proxy", "trusted_proxies: [0.0.0.0/0]\n",
			"1:19: trusted_proxies[0]: 0.0.0.0/0 covers every address…"},
		{"proxy without list", "trusted_proxies: 10.0.0.0/8\n",
			"1:18: trusted_proxies: must be a list of networks such as [10.0.0.0/8], got a single value"},
		{"any origin", "cors_origins: [\"*\"]\n",
			`1:16: cors_origins[0]: must be an origin such as https://app.example or http://localhost:3000 in lower case, got "*"`},
		{"origin with a path", "cors_origins:\n  - https://app.example\n  - https://app.example/\n",
			`3:5: cors_origins[1]: must be an origin such as https://app.example or http://localhost:3000 in lower case, got "https://app.example/"`},

		{"deprecation without a date", "deprecations:\n  getPet: {sunset: 2030-12-05}\n",
			"2:11: deprecations.getPet: must have since, the date from which the operation is deprecated"},
		{"sunset before deprecation", "deprecations:\n  getPet: {since: 2025-12-05, sunset: 2024-12-05}\n",
			"2:39: deprecations.getPet.sunset: …"},
		{"impossible date", "deprecations:\n  getPet: {since: 2025-02-30}\n",
			`2:19: deprecations.getPet.since: must be a date such as 2030-12-05, or a time such as 2030-12-05T12:00:00Z, got "2025-02-30"`},
		{"successor that is no target", "deprecations:\n  getPet: {since: 2025-12-05, successor: pets}\n",
			"2:42: deprecations.getPet.successor: …"},
		{"brownout after the sunset", "deprecations:\n  getPet:\n    since: 2025-12-05\n    sunset: 2030-12-05\n    brownouts:\n      - {start: 2030-12-01, end: 2030-12-02}\n      - {start: 2030-12-04, end: 2030-12-06}\n",
			"7:9: deprecations.getPet.brownouts[1]: …"},
		{"brownout that ends first", "deprecations:\n  getPet: {since: 2025-12-05, sunset: 2030-12-05, brownouts: [{start: 2030-12-02, end: 2030-12-01}]}\n",
			"2:63: deprecations.getPet.brownouts[0]: end must be after the start (2030-12-02T00:00:00Z), got 2030-12-01T00:00:00Z"},
		{"brownout member", "deprecations:\n  getPet:\n    since: 2025-12-05\n    brownouts: [{from: 2030-12-01}]\n",
			"4:18: deprecations.getPet.brownouts[0].from: unknown setting; reference/docs/CONFIGURATION.md lists all"},

		{"stability", "stability:\n  getPet: stable\n  getUsage: [beta]\n",
			`2:11: stability.getPet: must be experimental or beta, got "stable"` + "\n" +
				"3:13: stability.getUsage: must be a single value, got a list"},
		{"servers", "servers: {production: https://pets.example/, staging: /v1, test: x}\n",
			"1:23: servers.production: must be a URL such as https://pets.example/v1, which ends in /v1\n" +
				"1:55: servers.staging: must be a URL such as https://pets.example/v1, which ends in /v1\n" +
				"1:60: servers.test: unknown setting; reference/docs/CONFIGURATION.md lists all"},

		{"not YAML", "listen: [127.0.0.1\n",
			"1:9: this is not YAML: …"},
		{"tab", "plans:\n\tfree: [1/day]\n",
			"2:1: this is not YAML: …"},
		{"not settings", "- listen\n",
			`1:1: must be settings such as "listen: 127.0.0.1:8080", one per line, got a list`},
		{"two documents", "listen: 127.0.0.1:1\n---\ndatabase: a\n",
			"3:1: a second document begins here; the file must be one document"},
		{"reference", "database: &a x.db\ntls_cert: *a\n",
			"1:11: database: references (& and *) and types (!) are not supported; write the value itself\n" +
				"2:11: tls_cert: references (& and *) and types (!) are not supported; write the value itself"},
		{"merge", "penalty: {<<: {strikes: 1}}\n",
			"1:11: penalty: must have a name before the colon; put a name that is a number or a YAML word in quotes"},
		{"type", "database: !!str 5\n",
			"1:11: database: references (& and *) and types (!) are not supported; write the value itself"},

		{"timeouts", "timeouts: {read: 0s, store: 2h, reed: 1s, write: 30}\n",
			`1:18: timeouts.read: must be a duration from 1ms to 1h such as 10s, got "0s"` + "\n" +
				`1:29: timeouts.store: must be a duration from 1ms to 1h such as 10s, got "2h"` + "\n" +
				"1:33: timeouts.reed: unknown setting; reference/docs/CONFIGURATION.md lists all\n" +
				`1:50: timeouts.write: must be a duration from 1ms to 1h such as 10s, got "30"`},
		{"one timeout", "timeouts: 10s\n",
			"1:11: timeouts: must be a group such as {read_header: 5s}, got a single value"},
		{"timeouts that never apply", "timeouts: {read_header: 20s, write: 5s}\n",
			"1:25: timeouts.read_header: timeouts.read_header (20s) must not be longer than timeouts.read (15s)\n" +
				"1:37: timeouts.write: timeouts.store (10s) must be shorter than timeouts.write (5s)"},
		{"log", "log: {level: INFO, format: xml, file: a}\n",
			`1:14: log.level: must be debug, info, warn or error, got "INFO"` + "\n" +
				`1:28: log.format: must be auto, text or json, got "xml"` + "\n" +
				"1:33: log.file: unknown setting; reference/docs/CONFIGURATION.md lists all"},
		{"access lists", "deny: {networks: [10.0.0.0/8, here], owners: [\"\"], keys: [a]}\nallow: [ann]\n",
			`1:31: deny.networks[1]: "here" must be a network such as 10.0.0.0/8 or an address` + "\n" +
				"1:47: deny.owners[0]: must have 1 to 255 characters, got none\n" +
				"1:52: deny.keys: unknown setting; reference/docs/CONFIGURATION.md lists all\n" +
				"2:8: allow: must be a group such as {networks: []}, got a list"},
		{"networks", "deny: {networks: [192.0.2.1/24, \"::ffff:192.0.2.0/120\"]}\n",
			`1:19: deny.networks[0]: "192.0.2.1/24" has bits beyond its length; write 192.0.2.0/24` + "\n" +
				`1:33: deny.networks[1]: "::ffff:192.0.2.0/120" must be in the form of IPv4, such as 192.0.2.0/24`},
		{"allowed and denied", "deny: {networks: [10.0.0.0/8], owners: [ann]}\nallow: {networks: [10.0.0.0/8, 10.0.0.0/9], owners: [ann]}\n",
			"2:19: allow.networks: 10.0.0.0/8 is in deny.networks too; remove one\n" +
				`2:53: allow.owners: "ann" is in deny.owners too; remove one`},

		{"all at once, in the order of the file", "lisen: x\npenalty: {strikes: x}\nplans:\n  free: [1/x]\n  pro: [2/y]\nlisten: 1\n",
			"1:1: lisen: unknown setting; reference/docs/CONFIGURATION.md lists all\n" +
				`2:20: penalty.strikes: must be a whole number from 0 to 10000, got "x"` + "\n" +
				`4:10: plans.free[0]: quota "1/x": …` + "\n" +
				`5:9: plans.pro[0]: quota "2/y": …` + "\n" +
				`6:9: listen: must be host and port such as 127.0.0.1:8080, got "1"`},
	} {
		t.Run(tt.name, func(t *testing.T) { wantMistakes(t, tt.file, tt.want) })
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
			`PETSTORE_LISTEN: must be host and port such as 127.0.0.1:8080, got "8080"`},
		{"flag", "", Flags{"admin_listen": text("9090")}, nil,
			`--admin-listen: must be host and port such as 127.0.0.1:8080, got "9090"`},
		{"a port that is not written as it is", "", Flags{"listen": text("127.0.0.1:0080")}, nil,
			`--listen: must have a port from 0 to 65535, got "0080"`},
		{"a host with a space", "", Flags{"admin_listen": text("local host:80")}, nil,
			`--admin-listen: must have an address or a name as its host, got "local host"`},
		{"a host with a control character", "", Flags{"admin_listen": text("localhost\x7f:80")}, nil,
			`--admin-listen: must have an address or a name as its host, got "localhost\x7f"`},
		{"a URL", "", Flags{"admin_listen": text("http//localhost:80")}, nil,
			`--admin-listen: must have an address or a name as its host, got "http//localhost"`},
		{"empty database", "", Flags{"database": text("")}, nil,
			"--database: must be a SQLite file such as petstore.db, or a postgres:// URL, got nothing"},
		{"a setting that a flag makes wrong", "tls_cert: c\ntls_key: k\n", Flags{"tls_cert": text("")}, nil,
			"petstore.yaml:2:10: tls_key: needs tls_cert, which is not set"},
		{"the file first", "listen: 1\n", Flags{"tls_cert": text("c"), "database": text("")}, map[string]string{"PETSTORE_REDIS": "x"},
			`petstore.yaml:1:9: listen: must be host and port such as 127.0.0.1:8080, got "1"` + "\n" +
				"--database: must be a SQLite file such as petstore.db, or a postgres:// URL, got nothing\n" +
				"PETSTORE_REDIS: must be URLs such as redis://host:6379, separated by commas; address 1 is not one"},
	} {
		_, err := loadText(tt.file, tt.flags, environ(tt.env))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s: error is\n%v\nwant\n%s", tt.name, err, tt.want)
		}
	}
}

// Settings that are right one by one can be wrong together.
func TestSettingsHoldTogether(t *testing.T) {
	unencrypted := func(listen string) string {
		return "petstore.yaml:1:9: listen: other machines can reach " + listen + ", and API keys would cross the network unencrypted; " +
			"set tls_cert and tls_key, or name the proxies that terminate TLS in trusted_proxies, or listen on 127.0.0.1"
	}
	const timeouts = "petstore.yaml:1:…"
	for _, tt := range []struct{ file, want string }{
		{"listen: 127.0.0.1:80", ""},
		{"listen: 127.9.9.9:80", ""},
		{"listen: '[::1]:80'", ""},
		{"listen: '[::ffff:127.0.0.1]:80'", ""},
		{"listen: localhost:80", ""},
		{"listen: ':80'", unencrypted(":80")},
		{"listen: 0.0.0.0:80", unencrypted("0.0.0.0:80")},
		{"listen: '[::]:80'", unencrypted("[::]:80")},
		{"listen: 10.0.0.1:80", unencrypted("10.0.0.1:80")},
		{"listen: localhost.example:80", unencrypted("localhost.example:80")},
		{"listen: pets.example:80", unencrypted("pets.example:80")},
		{"listen: ':80'\ntls_cert: c\ntls_key: k", ""},
		{"listen: ':80'\ntrusted_proxies: [10.0.0.0/8]", ""},
		{"listen: ':80'\ntrusted_proxies: []", unencrypted(":80")},

		{"admin_listen: ''", ""},
		{"admin_listen: 127.0.0.1:1", ""},
		{"admin_listen: 127.0.0.1:0\nlisten: 127.0.0.1:0", ""},
		{"admin_listen: ':9090'\nadmin_token: 0123456789abcdeF", ""},
		{"admin_listen: ':9090'", "petstore.yaml:1:15: admin_listen: other machines can reach :9090; set admin_token (PETSTORE_ADMIN_TOKEN) or listen on 127.0.0.1"},

		{"timeouts: {read_header: 15s}", ""},
		{"timeouts: {read_header: 15001ms}", timeouts},
		{"timeouts: {store: 29999ms}", ""},
		{"timeouts: {store: 30s}", timeouts},
		{"timeouts: {idle: 1ms, drain: 1h}", ""},
		{"timeouts: {drain: 1h1ms}", timeouts},
		{"timeouts: {idle: 999us}", timeouts},
	} {
		_, err := fromFile(tt.file)
		if got := errorText(err); !matches(tt.want, got) {
			t.Errorf("%s: error is %q, want %q", tt.file, got, tt.want)
		}
	}
}

func TestErrorsRepeatNoSecret(t *testing.T) {
	const secret = "hush"
	for _, file := range []string{
		"admin_token: hush",
		"admin_token: [hush]",
		"admin_token: 'hush hush hush hush'",
		"database: mysql://u:hush@h/d",
		"database: 'postgres://u:hush@/d'",
		"database: 'postgres://u:hush@h:port/d'",
		"database: 'postgres://u:1/hush@h/d'",
		"database: 'host=h password=hush'",
		"redis: 'http://u:hush@h'",
		"redis: 'redis://u:hush@h:port'",
		"redis: 'redis://ok,hush'",
		"servers: {staging: 'https://u:hush@h'}",
	} {
		_, err := fromFile(file)
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: error is %v, want one that does not repeat the secret", file, err)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A server with PostgreSQL needs Redis or a file for usage.
func TestWhereUsageIsKept(t *testing.T) {
	const refused = "petstore.yaml:1:11: database: PostgreSQL does not keep usage and bans; set redis, which several servers can share, " +
		"or usage_file to a file of a single server"
	for _, tt := range []struct{ file, path, err string }{
		{"database: petstore.db", "petstore.db-usage", ""},
		{"database: petstore.db\nusage_file: /var/lib/usage", "/var/lib/usage", ""},
		{"database: petstore.db\nusage_file: petstore.db", "", "petstore.yaml:2:13: usage_file: petstore.db is the database; choose another file"},
		{"database: postgres://u:hush@h/d", "", refused},
		{"database: postgres://u:hush@h/d\nusage_file: usage", "usage", ""},
		{"database: postgres://u:hush@h/d\nredis: redis://h", "", ""},
	} {
		c, err := fromFile(tt.file)
		if errorText(err) != tt.err {
			t.Errorf("%s: error is %v, want %q", tt.file, err, tt.err)
		}
		if err == nil && c.UsagePath() != tt.path {
			t.Errorf("%s: UsagePath = %q, want %q", tt.file, c.UsagePath(), tt.path)
		}
	}
}
