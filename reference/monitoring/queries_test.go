package monitoring

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// A query is an expression of the rules or of the dashboard.
type query struct {
	where string // the alert or the panel
	expr  string
	text  string // with labels such as {{instance}} or $labels.instance
}

func queries(t *testing.T) (all []query) {
	t.Helper()
	for _, a := range readAlerts(t) {
		text := fmt.Sprint(a.Annotations)
		all = append(all, query{"alert " + a.Alert, a.Expr, text})
	}
	for _, p := range readPanels(t) {
		for _, target := range p.Targets {
			all = append(all, query{"panel " + p.Title, target.Expr, target.LegendFormat})
		}
	}
	return all
}

// An alert is a rule of alerts.yaml.
type alert struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

func readAlerts(t *testing.T) (all []alert) {
	t.Helper()
	data, err := os.ReadFile("alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string
			Rules []alert
		}
	}
	if err := yaml.Load(data, &file, yaml.WithKnownFields()); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

var (
	selectors  = regexp.MustCompile(`\b([a-zA-Z_:][\w:]*)\{([^}]*)\}`)
	conditions = regexp.MustCompile(`(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	groupings  = regexp.MustCompile(`\b(?:by|on|without|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
	inText     = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}|\$labels\.(\w+)`)
	names      = regexp.MustCompile(`\b(?:gatehouse|petstore|http|go|process|up)_?\w*\b`)
	quoted     = regexp.MustCompile(`"[^"]*"`)
)

// A matcher is a condition on a label of a metric.
type matcher struct{ label, operator, value string }

// matchers returns the conditions in an expression on each metric in it.
func (q query) matchers() map[string][]matcher {
	found := make(map[string][]matcher)
	for _, s := range selectors.FindAllStringSubmatch(q.expr, -1) {
		found[s[1]] = append(found[s[1]], matchersIn(s[2])...)
	}
	return found
}

func matchersIn(selector string) (all []matcher) {
	for _, m := range conditions.FindAllStringSubmatch(selector, -1) {
		all = append(all, matcher{m[1], m[2], m[3]})
	}
	return all
}

// results returns the labels that an expression groups by, and those that the texts
// about it show. Some metric of the expression must have them.
func (q query) results() (labels []string) {
	for _, g := range groupings.FindAllStringSubmatch(q.expr, -1) {
		for l := range strings.SplitSeq(g[1], ",") {
			labels = append(labels, strings.TrimSpace(l))
		}
	}
	for _, m := range inText.FindAllStringSubmatch(q.text, -1) {
		if label := m[1] + m[2]; label != "else" && label != "end" {
			labels = append(labels, label)
		}
	}
	return labels
}

// bare returns the names of metrics that stand without a selector, which matchers would
// not find.
func (q query) bare() []string {
	rest := selectors.ReplaceAllString(q.expr, "")
	rest = groupings.ReplaceAllString(rest, "")
	return names.FindAllString(quoted.ReplaceAllString(rest, ""), -1)
}

func TestQueriesAreUnderstood(t *testing.T) {
	q := query{
		expr: `sum by (a, le) (rate(go_x{job="p", b=~"go_1|2"}[5m])) / on (a) up{} + process_y > 2 and go_x{c!="{"}`,
		text: `{{ a }} {{d}} {{ $labels.e | humanize }} {{ $value }}{{ else }}{{ end }}`,
	}
	got := fmt.Sprint(q.matchers(), q.results(), q.bare())
	if want := "map[go_x:[{job = p} {b =~ go_1|2} {c != {}] up:[]] [a le a a d e] [process_y]"; got != want {
		t.Errorf("conditions, results and bare names of\n%s\nare %s, want %s", q.expr, got, want)
	}
}

func TestEveryMetricHasASelector(t *testing.T) {
	for _, q := range queries(t) {
		if bare := q.bare(); len(bare) > 0 {
			t.Errorf("%s: %v without a selector would read the metrics of every job", q.where, bare)
		}
		for name, all := range q.matchers() {
			if !slices.ContainsFunc(all, func(m matcher) bool { return m.label == "job" }) {
				t.Errorf("%s: %s has no condition on job", q.where, name)
			}
		}
	}
}
