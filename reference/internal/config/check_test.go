package config

import (
	"strings"
	"testing"
)

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
		{"flag", "", Flags{AdminListen: text("9090")}, nil,
			`--admin-listen: must be host and port such as 127.0.0.1:8080, got "9090"`},
		{"a port that is not written as it is", "", Flags{Listen: text("127.0.0.1:0080")}, nil,
			`--listen: must have a port from 0 to 65535, got "0080"`},
		{"a port that does not exist", "", Flags{Listen: text("127.0.0.1:65536")}, nil,
			`--listen: must have a port from 0 to 65535, got "65536"`},
		{"a host with a space", "", Flags{AdminListen: text("local host:80")}, nil,
			`--admin-listen: must have an address or a name as its host, got "local host"`},
		{"a host with a control character", "", Flags{AdminListen: text("localhost\x7f:80")}, nil,
			`--admin-listen: must have an address or a name as its host, got "localhost\x7f"`},
		{"a URL", "", Flags{AdminListen: text("http//localhost:80")}, nil,
			`--admin-listen: must have an address or a name as its host, got "http//localhost"`},
		{"empty database", "", Flags{Database: text("")}, nil,
			"--database: must be a SQLite file such as petstore.db, or a postgres:// URL, got nothing"},
		{"a setting that a flag makes wrong", "tls_cert: c\ntls_key: k\n", Flags{TLSCert: text("")}, nil,
			"petstore.yaml:2:10: tls_key: needs tls_cert, which is not set"},
		{"the file first", "listen: 1\n", Flags{TLSCert: text("c"), Database: text("")}, map[string]string{"PETSTORE_REDIS": "x"},
			"petstore.yaml:1:9: listen: must be host and port such as 127.0.0.1:8080, got a number\n" +
				"--database: must be a SQLite file such as petstore.db, or a postgres:// URL, got nothing\n" +
				"PETSTORE_REDIS: must be URLs such as redis://host:6379, separated by commas; address 1 is not one"},
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
		const want = "API keys would cross the network unencrypted; set tls_cert and tls_key, or name the proxies that terminate TLS in trusted_proxies, or listen on 127.0.0.1"
		switch {
		case tt.ok && err != nil:
			t.Errorf("%s: %v, want no error", tt.file, err)
		case !tt.ok && (err == nil || !strings.HasPrefix(err.Error(), "petstore.yaml:1:9: listen: ") || !strings.HasSuffix(err.Error(), want)):
			t.Errorf("%s: %v, want an error that names the line and says how to fix it", tt.file, err)
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
		{"admin_listen: ':9090'", "petstore.yaml:1:15: admin_listen: other machines can reach :9090; set admin_token (PETSTORE_ADMIN_TOKEN) or listen on 127.0.0.1"},
	} {
		_, err := fromFile(tt.file)
		if got := errorText(err); got != tt.want {
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
	} {
		_, err := fromFile(file)
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: error is %v, want one that does not repeat the secret", file, err)
		}
	}
}

func TestManyMistakesAreCounted(t *testing.T) {
	_, err := fromFile("a: 1\n" + strings.Repeat("a: 1\n", 100))
	lines := strings.Split(errorText(err), "\n")
	if len(lines) != 21 || lines[20] != "and 81 more mistakes" {
		t.Errorf("of 101 mistakes %d lines are told, the last %q, want 20 and a count of the rest", len(lines), lines[len(lines)-1])
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

func TestTimeoutsAtTheirBounds(t *testing.T) {
	for _, file := range []string{
		"timeouts: {read_header: 15s}", "timeouts: {store: 29999ms}", "timeouts: {idle: 1ms, drain: 1h}", "log: {max_size: 1000000}", "log: {max_size: 0}",
	} {
		if _, err := fromFile(file); err != nil {
			t.Errorf("%s: %v, want no error", file, err)
		}
	}
	for _, file := range []string{
		"timeouts: {read_header: 15001ms}", "timeouts: {store: 30s}", "timeouts: {drain: 1h1ms}", "timeouts: {idle: 999us}", "log: {max_size: 1000001}",
	} {
		if _, err := fromFile(file); err == nil {
			t.Errorf("%s: no error, want one", file)
		}
	}
}
