package monitoring

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
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
	if err := yaml.UnmarshalWithOptions(data, &file, yaml.DisallowUnknownField()); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

var (
	selectors = regexp.MustCompile(`\b([a-zA-Z_:][\w:]*)\{([^}]*)\}`)
	matchers  = regexp.MustCompile(`(\w+)\s*(=~|!~|!=|=)\s*"`)
	groupings = regexp.MustCompile(`\b(?:by|on|without|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
	inText    = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}|\$labels\.(\w+)`)
	names     = regexp.MustCompile(`\b(?:gatehouse|petstore|http|go|process|up)_?\w*\b`)
	quoted    = regexp.MustCompile(`"[^"]*"`)
)

// metrics returns the labels that an expression uses of each metric in it.
func (q query) metrics() map[string][]string {
	found := make(map[string][]string)
	for _, s := range selectors.FindAllStringSubmatch(q.expr, -1) {
		found[s[1]] = append(found[s[1]], labelsIn(s[2])...)
	}
	return found
}

func labelsIn(selector string) (labels []string) {
	for _, m := range matchers.FindAllStringSubmatch(selector, -1) {
		labels = append(labels, m[1])
	}
	return labels
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
		labels = append(labels, m[1]+m[2])
	}
	return labels
}

// bare returns the names of metrics that stand without a selector, which metrics would
// not find.
func (q query) bare() []string {
	rest := selectors.ReplaceAllString(q.expr, "")
	rest = groupings.ReplaceAllString(rest, "")
	return names.FindAllString(quoted.ReplaceAllString(rest, ""), -1)
}

func TestQueriesAreUnderstood(t *testing.T) {
	q := query{
		expr: `sum by (a, le) (rate(go_x{job="p", b=~"go_1|2"}[5m])) / on (a) up{} + process_y > 2 and go_x{c!="{"}`,
		text: `{{ a }} {{d}} {{ $labels.e | humanize }} {{ $value }}`,
	}
	got := fmt.Sprint(q.metrics(), q.results(), q.bare())
	if want := "map[go_x:[job b c] up:[]] [a le a a d e] [process_y]"; got != want {
		t.Errorf("metrics, results and bare names of\n%s\nare %s, want %s", q.expr, got, want)
	}
}

func TestEveryMetricHasASelector(t *testing.T) {
	for _, q := range queries(t) {
		if bare := q.bare(); len(bare) > 0 {
			t.Errorf("%s: %v without a selector would read the metrics of every job", q.where, bare)
		}
		for name, labels := range q.metrics() {
			if !slices.Contains(labels, "job") {
				t.Errorf("%s: %s has no condition on job", q.where, name)
			}
		}
	}
}
