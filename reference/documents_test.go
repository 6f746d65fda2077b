package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const guideURL = "https://github.com/animalstore/gatehouse/blob/main/reference/docs/ALERTS.md#"

func readDoc(t *testing.T, name string) string {
	t.Helper()
	return readFile(t, "docs/"+name)
}

// Every alert says how urgent it is, and leads to its section of the page of alerts,
// which says what to do.
func TestEveryAlertHasASection(t *testing.T) {
	sections := map[string]string{}
	for part := range strings.SplitSeq(readDoc(t, "ALERTS.md"), "\n### ") {
		title, text, _ := strings.Cut(part, "\n")
		text, _, _ = strings.Cut(text, "\n## ")
		sections[title] = text
	}
	alerts := map[string]bool{}
	for _, a := range readAlerts(t) {
		alerts[a.Alert] = true
		if s := a.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s has the severity %q, want critical or warning", a.Alert, s)
		}
		if a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("%s has no summary or no description", a.Alert)
		}
		if want := guideURL + strings.ToLower(a.Alert); a.Annotations["runbook_url"] != want {
			t.Errorf("%s leads to %s, want %s", a.Alert, a.Annotations["runbook_url"], want)
		}
		if strings.TrimSpace(sections[a.Alert]) == "" {
			t.Errorf("reference/docs/ALERTS.md has no section ### %s, or nothing in it", a.Alert)
		}
	}
	for title := range sections {
		if strings.HasPrefix(title, "Petstore") && !alerts[title] {
			t.Errorf("reference/docs/ALERTS.md has a section about %s, which is not an alert", title)
		}
	}
}

var (
	italics  = regexp.MustCompile(`[^*]\*([A-Z0-9][^*\n]*)\*[^*]`)
	headings = regexp.MustCompile(`(?m)^#+ (.*)$`)
	commands = regexp.MustCompile(`petstore((?: [a-z]+)*)((?: [^` + "`" + `\n|;]*)?)`)
	spans    = regexp.MustCompile("(?s)```[a-z]*\n(.*?)```|`([^`\n]+)`")
	usage    = regexp.MustCompile(`^Usage: petstore((?: [a-z]+)*)`)
	flags    = regexp.MustCompile(`--[a-z-]+`)
)

// What the guide has in italics is a panel of the dashboard, or a heading in docs.
func TestGuideNamesPanels(t *testing.T) {
	var known []string
	for _, p := range readPanels(t) {
		known = append(known, p.Title)
	}
	for _, doc := range []string{"../../docs/BENCHMARKS.md", "../../docs/FAULTS.md"} {
		for _, m := range headings.FindAllStringSubmatch(readDoc(t, doc), -1) {
			known = append(known, m[1])
		}
	}
	for _, m := range italics.FindAllStringSubmatch(readDoc(t, "ALERTS.md"), -1) {
		if !slices.Contains(known, m[1]) {
			t.Errorf("reference/docs/ALERTS.md names *%s*, which is neither a panel of the dashboard nor a heading", m[1])
		}
	}
}

// Every command in the documents of the server exists, and has the flags that they give it.
func TestDocumentedCommandsExist(t *testing.T) {
	t.Parallel()
	helps := map[string]string{} // by command
	for _, doc := range []string{"OPERATING.md", "ALERTS.md", "DEPLOYING.md", "POSTGRESQL.md", "SCALING.md", "../README.md"} {
		commandsExist(t, doc, helps)
	}
}

func commandsExist(t *testing.T, doc string, helps map[string]string) {
	found := false
	for _, c := range spans.FindAllStringSubmatch(readDoc(t, doc), -1) {
		text := strings.ReplaceAll(c[1]+c[2], "\\\n", " ")
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "petstore ") {
				continue
			}
			found = true
			m := commands.FindStringSubmatch(line)
			help, ok := helps[m[1]]
			if !ok {
				out, err := exec.CommandContext(t.Context(), "petstore", append(strings.Fields(m[1]), "--help")...).CombinedOutput()
				help = string(out)
				if u := usage.FindStringSubmatch(help); err != nil || u == nil || u[1] == "" || !strings.HasPrefix(m[1]+" ", u[1]+" ") {
					t.Errorf("%s: petstore%s is not a command: %v\n%s", doc, m[1], err, out)
				}
				helps[m[1]] = help
			}
			for _, flag := range flags.FindAllString(m[2], -1) {
				if !strings.Contains(help, flag) {
					t.Errorf("%s: petstore%s has no flag %s", doc, m[1], flag)
				}
			}
		}
	}
	if !found {
		t.Errorf("found no commands in %s", doc)
	}
}

var (
	links       = regexp.MustCompile(`\]\(([^)\s#]*)(?:#([^)\s]*))?\)`)
	fences      = regexp.MustCompile("(?s)```.*?```")
	punctuation = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Every link in the documents leads to a file of the repository and, if it names a
// section, to a heading of that file. Addresses with a scheme are not looked at.
func TestDocumentsLinkToWhatExists(t *testing.T) {
	const root = ".."
	var docs []string
	for _, dir := range []string{"", "docs", "reference", "reference/docs", "reference/monitoring"} {
		found, err := filepath.Glob(filepath.Join(root, dir, "*.md"))
		must(t, err)
		docs = append(docs, found...)
	}
	for _, want := range []string{"README.md", "reference/docs/OPERATING.md", "reference/README.md"} {
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
	must(t, err)
	return string(data)
}
