package monitoring

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	links       = regexp.MustCompile(`\]\(([^)\s#]*)(?:#([^)\s]*))?\)`)
	fences      = regexp.MustCompile("(?s)```.*?```")
	punctuation = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Every link in the documents leads to a file of the repository and, if it names a
// section, to a heading of that file. Addresses with a scheme are not looked at.
func TestDocumentsLinkToWhatExists(t *testing.T) {
	const root = "../.."
	var docs []string
	for _, dir := range []string{"", "docs", "reference", "reference/docs", "reference/monitoring"} {
		found, err := filepath.Glob(filepath.Join(root, dir, "*.md"))
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, found...)
	}
	for _, want := range []string{"README.md", "reference/docs/OPERATING.md", "reference/docs/ADMIN.md", "reference/README.md"} {
		if !slices.Contains(docs, filepath.Join(root, want)) {
			t.Errorf("did not find %s", want)
		}
	}
	for _, doc := range docs {
		for _, m := range links.FindAllStringSubmatch(fences.ReplaceAllString(readFile(t, doc), ""), -1) {
			target, section := m[1], m[2]
			if strings.Contains(target, ":") {
				continue
			}
			file := doc
			if target != "" {
				file = filepath.Join(filepath.Dir(doc), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s, which does not exist", doc, target)
			} else if section != "" && !slices.Contains(sections(readFile(t, file)), section) {
				t.Errorf("%s links to %s#%s, which has no such heading", doc, target, section)
			}
		}
	}
}

// sections returns the anchors that GitHub gives the headings of a document.
func sections(doc string) []string {
	var anchors []string
	for _, m := range headings.FindAllStringSubmatch(fences.ReplaceAllString(doc, ""), -1) {
		text := punctuation.ReplaceAllString(strings.ToLower(m[1]), "")
		anchors = append(anchors, strings.ReplaceAll(text, " ", "-"))
	}
	return anchors
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
