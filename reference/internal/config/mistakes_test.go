package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// testdata/mistakes.txt has settings files with mistakes, each followed by a line ----. Behind
// a line with a mistake stands what is said about it: the column, the setting, and how to fix
// it. A … at the end stands for any rest.
func TestMistakesInTheFile(t *testing.T) {
	cases, err := os.ReadFile(filepath.Join("testdata", "mistakes.txt"))
	must(t, err)
	for content := range strings.SplitSeq(strings.TrimSuffix(string(cases), "----\n"), "----\n") {
		var want []string
		lines := strings.Split(content, "\n")
		for i, line := range lines {
			text, mistake, wrong := strings.Cut(line, "  #= ")
			if lines[i] = text; wrong {
				want = append(want, fmt.Sprintf("petstore.yaml:%d:%s", i+1, mistake))
			}
		}
		wantMistakes(t, strings.Join(lines, "\n"), want)
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

func TestSettingsThatHoldTogether(t *testing.T) {
	for _, file := range []string{
		"listen: 127.9.9.9:80", "listen: '[::1]:80'", "listen: '[::ffff:127.0.0.1]:80'", "listen: localhost:80",
		"listen: ':80'\ntls_cert: c\ntls_key: k",
		"listen: ':80'\ntrusted_proxies: [10.0.0.0/8]",
		"admin_listen: ''",
		"admin_listen: 127.0.0.1:0\nlisten: 127.0.0.1:0",
		"admin_listen: ':9090'\nadmin_token: 0123456789abcdeF",
		"timeouts: {store: 29999ms}",
		"timeouts: {idle: 1ms, drain: 1h}",
		"database: postgres://u:hush@h/d\nredis: redis://h",
	} {
		mustLoad(t, file)
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

func TestWhereUsageIsKept(t *testing.T) {
	for file, want := range map[string]string{
		"database: petstore.db":                              "petstore.db-usage",
		"database: petstore.db\nusage_file: /var/lib/usage":  "/var/lib/usage",
		"database: postgres://u:hush@h/d\nusage_file: usage": "usage",
	} {
		if got := mustLoad(t, file).UsagePath(); got != want {
			t.Errorf("%s: UsagePath = %q, want %q", file, got, want)
		}
	}
}
