package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/internal/testcheck"
)

var must = testcheck.NoError

// environ looks variables up in a map.
func environ(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := vars[name]
		return value, ok
	}
}

// fromFile loads a file and nothing else.
func fromFile(content string) (*Config, error) {
	return loadText(content, nil, environ(nil))
}

// loadText loads a file, the environment and flags.
func loadText(content string, flags Flags, lookupEnv func(string) (string, bool)) (*Config, error) {
	return load(file{name: "petstore.yaml", content: []byte(content)}, flags, lookupEnv)
}

func mustLoad(t *testing.T, content string) *Config {
	t.Helper()
	c, err := fromFile(content)
	if err != nil {
		t.Fatalf("load of\n%s\n= %v", content, err)
	}
	return c
}

func tempFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "petstore.yaml")
	must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// wantMistakes loads a file with mistakes, which are lines without "petstore.yaml:".
func wantMistakes(t *testing.T, file, mistakes string) {
	t.Helper()
	_, err := fromFile(file)
	if err == nil {
		t.Fatalf("load of\n%s\nsucceeded, want an error", file)
	}
	want, got := strings.Split(mistakes, "\n"), strings.Split(err.Error(), "\n")
	for i, line := range got {
		got[i] = strings.TrimPrefix(line, "petstore.yaml:")
		if i < len(want) && matches(want[i], got[i]) {
			got[i] = want[i]
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("load of\n%s\n(-want +got):\n%s", file, diff)
	}
}

// matches compares text. A … at the end of want stands for any rest, for what
// other packages say is theirs to word.
func matches(want, got string) bool {
	if start, ok := strings.CutSuffix(want, "…"); ok {
		return strings.HasPrefix(got, start)
	}
	return got == want
}
