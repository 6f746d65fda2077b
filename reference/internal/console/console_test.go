package console_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/console"
	"github.com/animalstore/gatehouse/reference/internal/webpage"
)

// Everything that the page refers to is there, and nothing makes text HTML or code.
func TestPageIsComplete(t *testing.T) {
	got, err := console.New()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]webpage.File)
	for _, f := range got {
		all[f.Path] = f
	}
	page := string(all["/"].Body)
	ids := make(map[string]bool)
	for _, m := range regexp.MustCompile(`\bid="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if ids[m[1]] {
			t.Errorf("the id %q is there twice", m[1])
		}
		ids[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`(?:src|href)="(console/[^"]*)"`).FindAllStringSubmatch(page, -1) {
		if _, ok := all["/"+m[1]]; !ok {
			t.Errorf("the page refers to %s, which is not served", m[1])
		}
	}
	for name, f := range all {
		body := string(f.Body)
		for _, m := range regexp.MustCompile(`from "\./([^"]*)"`).FindAllStringSubmatch(body, -1) {
			if _, ok := all["/console/"+m[1]]; !ok {
				t.Errorf("%s imports %s, which is not served", name, m[1])
			}
		}
		for _, m := range regexp.MustCompile(`(?:find\(|for=|aria-labelledby=|aria-describedby=|panel: |href=)"#?([a-z-]+)"`).FindAllStringSubmatch(body, -1) {
			if (strings.Contains(m[0], "#") || !strings.HasPrefix(m[0], "find")) && !ids[m[1]] {
				t.Errorf("%s has %s, which the page does not have", name, m[0])
			}
		}
		if m := regexp.MustCompile(`(?:src|href)="?https?:|\burl\(['"a-z]|@import|\sstyle=|\son[a-z]+=|(?:inner|outer)HTML|eval\(|localStorage|sessionStorage|document\.cookie`).FindString(body); m != "" {
			t.Errorf("%s has %q", name, m)
		}
	}
}
