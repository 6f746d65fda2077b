package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/internal/testcheck"
)

var must = testcheck.NoError

// environ returns variables as [os.Environ] does.
func environ(vars map[string]string) (list []string) {
	for name, value := range vars {
		list = append(list, name+"="+value)
	}
	return list
}

// fromFile loads a file and nothing else.
func fromFile(content string) (*Config, error) {
	return loadText(content, nil, nil)
}

// loadText loads a file, the environment and flags.
func loadText(content string, flags Flags, environ []string) (*Config, error) {
	return NewSource(flags, environ).load(file{name: "petstore.yaml", content: []byte(content)})
}

func mustLoad(t *testing.T, content string) *Config {
	t.Helper()
	c, err := fromFile(content)
	if err != nil {
		t.Fatalf("load of\n%s\n= %v", content, err)
	}
	return c
}

// wantSettings compares settings, but not where they come from.
func wantSettings(t *testing.T, from string, got, want *Config) {
	t.Helper()
	g, w := *got, *want
	for _, c := range []*Config{&g, &w} {
		c.places = nil
	}
	if !reflect.DeepEqual(g, w) {
		t.Errorf("from %s: settings are\n%+v\nwant\n%+v", from, g, w)
	}
}

func tempFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "petstore.yaml")
	must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// wantMistakes loads a file that has exactly these mistakes.
func wantMistakes(t *testing.T, content string, want []string) {
	t.Helper()
	_, err := fromFile(content)
	got := strings.Split(errorText(err), "\n")
	for i := range min(len(want), len(got)) {
		if matches(want[i], got[i]) {
			got[i] = want[i]
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("load of\n%s\n(-want +got):\n%s", content, diff)
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
