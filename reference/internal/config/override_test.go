package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFlagOverEnvironmentOverFileOverDefault(t *testing.T) {
	text := func(s string) *string { return &s }
	file := tempFile(t, "listen: 127.0.0.1:1\n")
	other := tempFile(t, "listen: 127.0.0.1:4\n")
	for _, tt := range []struct {
		name  string
		flags Flags
		env   map[string]string
		want  string
		where string
	}{
		{"default", Flags{}, nil, "127.0.0.1:8080", "default"},
		{"file", Flags{"config": &file}, nil, "127.0.0.1:1", file + ":1:9"},
		{"file by environment", Flags{}, map[string]string{"PETSTORE_CONFIG": file}, "127.0.0.1:1", file + ":1:9"},
		{"file by flag and environment", Flags{"config": &other}, map[string]string{"PETSTORE_CONFIG": file}, "127.0.0.1:4", other + ":1:9"},
		{"environment", Flags{}, map[string]string{"PETSTORE_LISTEN": "127.0.0.1:2"}, "127.0.0.1:2", "PETSTORE_LISTEN"},
		{"environment over file", Flags{"config": &file}, map[string]string{"PETSTORE_LISTEN": "127.0.0.1:2"}, "127.0.0.1:2", "PETSTORE_LISTEN"},
		{"flag over file", Flags{"config": &file, "listen": text("127.0.0.1:3")}, nil, "127.0.0.1:3", "--listen"},
		{"flag over all", Flags{"config": &file, "listen": text("127.0.0.1:3")}, map[string]string{"PETSTORE_LISTEN": "broken"}, "127.0.0.1:3", "--listen"},
		{"other variables are left alone", Flags{}, map[string]string{"PETSTORE_SERVICE_HOST": "10.0.0.1"}, "127.0.0.1:8080", "default"},
	} {
		c, err := NewSource(tt.flags, environ(tt.env)).Load()
		if err != nil {
			t.Errorf("%s: Load = %v", tt.name, err)
			continue
		}
		if c.Listen != tt.want || c.Where("listen") != tt.where {
			t.Errorf("%s: listen is %s from %s, want %s from %s", tt.name, c.Listen, c.Where("listen"), tt.want, tt.where)
		}
	}
}

// Each setting with a flag means the same in the file, in its variable and in its flag.
func TestTheSameInFileVariableAndFlag(t *testing.T) {
	values := map[string]string{
		"listen": "127.0.0.1:1", "admin_listen": "", "tls_cert": "cert.pem", "tls_key": "key.pem",
		"max_connections": "100", "max_connections_per_network": "10", "drain_delay": "10s",
		"database": "other.db", "migrate": "manual", "usage_file": "usage", "redis": "redis://a:1, rediss://u:p@b:2/0",
		"log.level": "warn", "log.format": "json",
	}
	var file strings.Builder
	env, flags := map[string]string{}, Flags{}
	for _, s := range new(Config).settings() {
		value, ok := values[s.name]
		if ok != (s.flag != "") {
			t.Errorf("%s is in this test: %t", s.name, ok)
		}
		if !ok {
			continue
		}
		env[variable(s.name)], flags[s.name] = value, &value
		if !strings.Contains(s.name, ".") {
			fmt.Fprintf(&file, "%s: %q\n", s.name, value)
		}
	}
	fromFile, err := loadText(file.String()+"log: {level: warn, format: json}", nil, nil)
	must(t, err)
	fromVariables, err := loadText("", nil, environ(env))
	must(t, err)
	fromFlags, err := loadText("", flags, nil)
	must(t, err)
	wantSettings(t, "variables", fromVariables, fromFile)
	wantSettings(t, "flags", fromFlags, fromFile)
	if applied, restart := Default().Changes(fromFile); len(applied)+len(restart) != len(values) {
		t.Errorf("the file changes %q and %q, want each of the %d settings", applied, restart, len(values))
	}
}

// Lists and groups are YAML in a variable.
func TestVariablesOfListsAndGroups(t *testing.T) {
	env := map[string]string{
		"PETSTORE_PLANS": "{pro: [2/day, 3/minute]}", "PETSTORE_TRUSTED_PROXIES": "[10.0.0.0/8]",
		"PETSTORE_TIMEOUTS_READ": "20s", "PETSTORE_PENALTY_STRIKES": "3", "PETSTORE_CORS_ORIGINS": "- https://a.example",
	}
	_, err := loadText("plans: {free: [1/day]}\ntrusted_proxies: [x]\n", nil, environ(env))
	if got, want := errorText(err), "petstore.yaml:2:19: trusted_proxies[0]: …"; !matches(want, got) {
		t.Errorf("load of a file with a mistake that a variable overrides = %q, want %q", got, want)
	}
	env["PETSTORE_STABILITY"] = "{getPet: beta}"
	c, err := loadText("plans: {free: [1/day]}\nstability: {listPets: beta}\n", nil, environ(env))
	must(t, err)
	got := fmt.Sprint(c.Stability, " ", c.Plans[0].Fixed, c.Plans[0].Fixed.Penalty().Strikes, len(c.Plans), c.HTTP.TrustedProxies, c.HTTP.ReadTimeout, c.CORSOrigins, " ", c.Where("plans.pro"))
	if want := "map[getPet:beta] pro [3/minute 2/day] 3 1 [10.0.0.0/8] 20s [https://a.example] PETSTORE_PLANS"; got != want {
		t.Errorf("the settings are %s, want %s", got, want)
	}
	for text, want := range map[string]string{
		"{pro: [2/dya]}":         `PETSTORE_PLANS: plans.pro[0]: quota "2/dya": …`,
		"[pro":                   "PETSTORE_PLANS: this is not YAML: …",
		"":                       "PETSTORE_PLANS: must be a group of plans …",
		"pro":                    "PETSTORE_PLANS: must be a group of plans …",
		"{a: custom, a: custom}": "PETSTORE_PLANS: plans.a: is set twice…",
	} {
		_, err := loadText("", nil, environ(map[string]string{"PETSTORE_PLANS": text}))
		if got := errorText(err); !matches(want, got) || strings.Contains(got, "\n") {
			t.Errorf("PETSTORE_PLANS=%s: load = %q, want the one line %q", text, got, want)
		}
	}
}

func TestUnknownVariablesAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name    string
		environ []string
		want    string
	}{
		{"a file for what is no secret", []string{"PETSTORE_LISTEN_FILE=x"}, "PETSTORE_LISTEN_FILE: unknown variable; reference/docs/CONFIGURATION.md lists all"},
		{"other programs", []string{"HOME=/", "PETSTORES=1", "MY_PETSTORE_LISTEN=1", "=C:=x"}, ""},
		{"misspelt", []string{"PETSTORE_LISTEN_ADMIN=x", "PETSTORE_=a=b", "PETSTORE_PENALTY=1"},
			"PETSTORE_: unknown variable; reference/docs/CONFIGURATION.md lists all\n" +
				"PETSTORE_LISTEN_ADMIN: unknown variable; reference/docs/CONFIGURATION.md lists all\n" +
				"PETSTORE_PENALTY: unknown variable; reference/docs/CONFIGURATION.md lists all"},
		{"Kubernetes", []string{
			"PETSTORE_SERVICE_HOST=10.0.0.1", "PETSTORE_SERVICE_PORT=80", "PETSTORE_SERVICE_PORT_HTTP=80", "PETSTORE_PORT=tcp://10.0.0.1:80",
			"PETSTORE_PORT_80_TCP=x", "PETSTORE_PORT_80_TCP_ADDR=x", "PETSTORE_REDIS_PORT_6379_TCP_PROTO=x", "PETSTORE_REDIS_SERVICE_HOST=x",
		}, ""},
	} {
		if _, err := loadText("", nil, tt.environ); errorText(err) != tt.want {
			t.Errorf("%s: load = %q, want %q", tt.name, err, tt.want)
		}
	}
}

func TestSecretsFromFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	c, err := loadText("admin_token: of-the-settings-file\n", Flags{}, environ(map[string]string{
		"PETSTORE_ADMIN_TOKEN_FILE": file("token", "hush-hush-hush-hush\n"),
		"PETSTORE_DATABASE_FILE":    file("database", "other.db\r\n"),
		"PETSTORE_REDIS_FILE":       file("redis", "redis://a:1,redis://b:1"),
	}))
	must(t, err)
	if c.AdminToken != "hush-hush-hush-hush" || c.Database != "other.db" || len(c.Redis) != 2 {
		t.Errorf("the settings have token %q, database %q, Redis %q", c.AdminToken, c.Database, c.Redis)
	}
	if got := c.Where("admin_token"); got != "PETSTORE_ADMIN_TOKEN_FILE" {
		t.Errorf("the token is from %s, want PETSTORE_ADMIN_TOKEN_FILE", got)
	}
	database := "flag.db"
	c, err = loadText("", Flags{"database": &database}, environ(map[string]string{"PETSTORE_DATABASE_FILE": filepath.Join(dir, "none")}))
	if err != nil || c.Database != database {
		t.Errorf("with a flag, too: %v, %+v; want that the flag overrides the variable", err, c)
	}
}

func TestSecretsFromWrongFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	for _, tt := range []struct {
		name, content string
		env           map[string]string
		want          string
	}{
		{"none", "-", nil, "cannot read PATH: no such file or directory"},
		{"no name", "-", map[string]string{"PETSTORE_ADMIN_TOKEN_FILE": ""}, "cannot read : no such file or directory"},
		{"empty", "", nil, "must name a file with the value in one line and nothing else, got PATH"},
		{"empty line", "\n", nil, "must name a file with the value in one line and nothing else, got PATH"},
		{"two lines", "hush-hush-hush-hush\nhush-hush-hush-hush\n", nil, "must name a file with the value in one line and nothing else, got PATH"},
		{"a database", "SQLite format 3\x00", nil, "must name a file with the value in one line and nothing else, got PATH"},
		{"too long", strings.Repeat("x", maxSecret+1), nil, "cannot read PATH: it is larger than 64 KiB"},
		{"a folder", "-", map[string]string{"PETSTORE_ADMIN_TOKEN_FILE": filepath.Dir(path)}, "cannot read " + filepath.Dir(path) + ": it is not a regular file"},
		{"twice", "hush-hush-hush-hush", map[string]string{"PETSTORE_ADMIN_TOKEN": "mush"}, "PETSTORE_ADMIN_TOKEN is set too; unset one of them"},
		{"a wrong value", "hush", nil, "must have at least 16 random characters, got 4"},
	} {
		if os.Remove(path); tt.content != "-" {
			must(t, os.WriteFile(path, []byte(tt.content), 0o600))
		}
		env := map[string]string{"PETSTORE_ADMIN_TOKEN_FILE": path}
		for name, value := range tt.env {
			env[name] = value
		}
		_, err := loadText("", Flags{}, environ(env))
		want := "PETSTORE_ADMIN_TOKEN_FILE: admin_token: " + strings.ReplaceAll(tt.want, "PATH", path)
		if got := errorText(err); got != want {
			t.Errorf("%s: load = %q, want %q", tt.name, got, want)
		}
	}
}
