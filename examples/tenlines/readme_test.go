package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
)

// blocks returns the blocks of code in the language on the first page of the repository,
// up to its second heading.
func blocks(t *testing.T, language string) (all []string) {
	t.Helper()
	page := testcheck.Must(os.ReadFile("../../README.md"))
	first, _, _ := strings.Cut(string(page), "\n## ")
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(first, -1) {
		all = append(all, m[1])
	}
	return all
}

// The ten lines on the page are those of this service, so that they compile, and do what
// the other tests say.
func TestTenLines(t *testing.T) {
	source := testcheck.Must(os.ReadFile("main.go"))
	all := blocks(t, "go")
	if len(all) != 3 {
		t.Fatalf("README.md begins with %d blocks of Go, want the one line, the imports and the lines that follow", len(all))
	}
	lines := 0
	for _, block := range all[1:] {
		indented := regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(block, "\t$1")
		if !strings.Contains(string(source), indented) {
			t.Errorf("main.go does not have these lines of README.md:\n%s", block)
		}
		lines += strings.Count(strings.TrimSpace(block), "\n") + 1
	}
	if lines > 10 {
		t.Errorf("README.md adds %d lines to a service, want at most 10", lines)
	}
}

// The response on the page is what a client gets, 43 seconds into a minute.
func TestResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(43 * time.Second)
		h := newRouter()
		for range 60 {
			get(h, "ann")
		}
		w := get(h, "ann")
		fields, body, _ := strings.Cut(blocks(t, "http")[0], "\n\n")
		if body != w.Body.String() {
			t.Errorf("body:\n%s\nREADME.md has\n%s", w.Body, body)
		}
		lines := strings.Split(fields, "\n")
		if want := fmt.Sprintf("HTTP/1.1 %d Too Many Requests", w.Code); lines[0] != want {
			t.Errorf("status line %q, README.md has %q", want, lines[0])
		}
		for _, line := range lines[1:] {
			name, value, _ := strings.Cut(line, ": ")
			if name == "X-Ratelimit-Reset" { // in the bubble it is the year 2000
				continue
			}
			if got := w.Header().Get(name); got != value {
				t.Errorf("%s: %s, README.md has %s", name, got, value)
			}
		}
	})
}
