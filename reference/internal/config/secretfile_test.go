package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSecretsFromFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	c, err := load("petstore.yaml", []byte("admin_token: of-the-settings-file\n"), Flags{}, environ(map[string]string{
		"PETSTORE_ADMIN_TOKEN_FILE": file("token", "hush-hush-hush-hush\n"),
		"PETSTORE_DATABASE_FILE":    file("database", "other.db\r\n"),
		"PETSTORE_REDIS_FILE":       file("redis", "redis://a:1,redis://b:1"),
	}))
	if err != nil {
		t.Fatal(err)
	}
	if c.AdminToken != "hush-hush-hush-hush" || c.Database != "other.db" || len(c.Redis) != 2 {
		t.Errorf("the settings have token %q, database %q, Redis %q", c.AdminToken.Reveal(), c.Database, c.Redis)
	}
	if got := c.Where("admin_token"); got != "PETSTORE_ADMIN_TOKEN_FILE" {
		t.Errorf("the token is from %s, want PETSTORE_ADMIN_TOKEN_FILE", got)
	}
	database := "flag.db"
	c, err = load("", nil, Flags{Database: &database}, environ(map[string]string{"PETSTORE_DATABASE_FILE": filepath.Join(dir, "none")}))
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
		{"no name", "-", map[string]string{"PETSTORE_ADMIN_TOKEN_FILE": ""}, "must name a file with the value, but is empty; unset it if there is none"},
		{"empty", "", nil, "must name a file with the value, got PATH, which is empty"},
		{"empty line", "\n", nil, "must name a file with the value, got PATH, which is empty"},
		{"two lines", "hush-hush-hush-hush\nhush-hush-hush-hush\n", nil, "must name a file with the value in one line, got PATH, which has something else"},
		{"a database", "SQLite format 3\x00", nil, "must name a file with the value in one line, got PATH, which has something else"},
		{"too long", strings.Repeat("x", maxSecret+1), nil, "must name a file with the value in one line, got PATH, which has something else"},
		{"twice", "hush-hush-hush-hush", map[string]string{"PETSTORE_ADMIN_TOKEN": "mush"}, "PETSTORE_ADMIN_TOKEN is set too; unset one of them"},
		{"a wrong value", "hush", nil, "must have at least 16 random characters, got 4"},
	} {
		if os.Remove(path); tt.content != "-" {
			if err := os.WriteFile(path, []byte(tt.content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		env := map[string]string{"PETSTORE_ADMIN_TOKEN_FILE": path}
		for name, value := range tt.env {
			env[name] = value
		}
		_, err := load("", nil, Flags{}, environ(env))
		want := "PETSTORE_ADMIN_TOKEN_FILE: admin_token: " + strings.ReplaceAll(tt.want, "PATH", path)
		if got := errorText(err); got != want {
			t.Errorf("%s: load = %q, want %q", tt.name, got, want)
		}
	}
}

func TestSecretsFromWhatIsNotAFile(t *testing.T) {
	dir := t.TempDir()
	_, err := load("", nil, Flags{}, environ(map[string]string{"PETSTORE_REDIS_FILE": dir}))
	if got, want := errorText(err), "PETSTORE_REDIS_FILE: redis: cannot read "+dir+": it is not a regular file"; got != want {
		t.Errorf("load = %q, want %q", got, want)
	}
}

// Only settings that can hold a secret can come from a file.
func TestVariablesForFiles(t *testing.T) {
	if err := CheckEnvironment([]string{"PETSTORE_ADMIN_TOKEN_FILE=x", "PETSTORE_DATABASE_FILE=x", "PETSTORE_REDIS_FILE=x"}); err != nil {
		t.Error(err)
	}
	if err := CheckEnvironment([]string{"PETSTORE_LISTEN_FILE=x"}); err == nil {
		t.Error("PETSTORE_LISTEN_FILE is accepted, want an error")
	}
}
