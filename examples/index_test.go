// Package examples tests the index of the examples, README.md.
package examples

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/internal/testcheck"
)

// The index names each example once, and each of its links leads somewhere. Functions
// that it names are in the file of the link.
func TestIndex(t *testing.T) {
	page, err := os.ReadFile("README.md")
	testcheck.NoError(t, err)
	programs, err := filepath.Glob("*/main.go")
	if err != nil || len(programs) == 0 {
		t.Fatalf("no examples, error %v", err)
	}
	for _, file := range programs {
		name := filepath.Base(filepath.Dir(file))
		if n := strings.Count(string(page), "["+name+"]("+name+") |"); n != 1 {
			t.Errorf("the index names the example %s %d times, want once", name, n)
		}
	}
	for _, m := range regexp.MustCompile(`\[(.*?)\]\((.*?)\)`).FindAllStringSubmatch(string(page), -1) {
		path := m[2]
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
			continue
		}
		for _, function := range regexp.MustCompile(`Example\w*`).FindAllString(m[1], -1) {
			if file, err := os.ReadFile(path); err != nil || !strings.Contains(string(file), "func "+function+"(") {
				t.Errorf("%s has no function %s, error %v", m[2], function, err)
			}
		}
	}
}

// The programs that the page does not list as exceptions listen on the address that it names.
func TestListening(t *testing.T) {
	page := testcheck.Must(os.ReadFile("README.md"))
	m := regexp.MustCompile(`(?s)All except (.*?)\s+listen on (\S+) until`).FindSubmatch(page)
	if m == nil {
		t.Fatal("README.md does not say which programs listen")
	}
	programs := testcheck.Must(filepath.Glob("*/main.go"))
	for _, file := range programs {
		source := testcheck.Must(os.ReadFile(file))
		name := filepath.Base(filepath.Dir(file))
		excepted := strings.Contains(string(m[1]), "`"+name+"`")
		if listens := strings.Contains(string(source), string(m[2])) || strings.Contains(string(source), "demo.Serve("); listens == excepted {
			t.Errorf("%s listens on %s: %t; README.md says %t", name, m[2], listens, !excepted)
		}
	}
}
