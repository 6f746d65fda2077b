package monitoring

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func formatFloat(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// Prometheus adds these metrics, and these labels to all metrics.
var (
	ofPrometheus = map[string][]string{"up": nil, "ALERTS": {"alertname", "alertstate", "severity"}}
	added        = []string{"job", "instance"}
)

// The rules and the dashboard ask for metrics, labels and values that servers expose,
// and METRICS.md lists all metrics.
func TestMetrics(t *testing.T) {
	exposed := expose(t)
	compare(t, "METRICS.md", exposed.markdown())
	for _, q := range queries(t) {
		labels := slices.Clone(added)
		for series, matchers := range q.matchers() {
			if of, ok := ofPrometheus[series]; ok {
				labels = append(labels, of...)
				continue
			}
			m, ok := exposed.find(series)
			if !ok {
				t.Errorf("%s asks for %s, which no server exposes", q.where, series)
				continue
			}
			labels = slices.AppendSeq(labels, maps.Keys(m.labels))
			for _, matcher := range matchers {
				if problem := m.check(matcher); problem != "" {
					t.Errorf("%s: %s %s", q.where, series, problem)
				}
			}
		}
		for _, label := range q.results() {
			if !slices.Contains(labels, label) {
				t.Errorf("%s uses the label %s, which its metrics do not have", q.where, label)
			}
		}
	}
}

// check says what is wrong with a condition on a label of the metric: the metric does
// not have the label, or no series can meet the condition. It returns "" if nothing is.
func (m metric) check(c matcher) string {
	if slices.Contains(added, c.label) {
		return ""
	}
	values, ok := m.labels[c.label]
	switch {
	case !ok:
		return "has no label " + c.label
	case c.operator == "=" && !values[c.value]:
		return fmt.Sprintf("never has %s=%q, only %v", c.label, c.value, slices.Sorted(maps.Keys(values)))
	case c.operator == "=~":
		r := regexp.MustCompile("^(?:" + c.value + ")$")
		if !slices.ContainsFunc(slices.Collect(maps.Keys(values)), r.MatchString) {
			return fmt.Sprintf("never has %s=~%q, only %v", c.label, c.value, slices.Sorted(maps.Keys(values)))
		}
	}
	return ""
}

const metricsHead = `# Metrics

All metrics of the server at /metrics of the admin listener, by their names in Prometheus, except those of the Go runtime (go_…) and of the process (process_…). Each also has the labels job and instance, and a histogram the label le. A test writes this page: go generate ./reference/monitoring.

| metric | type | labels | |
|---|---|---|---|
`

// markdown returns the page METRICS.md.
func (c catalogue) markdown() string {
	var b strings.Builder
	b.WriteString(metricsHead)
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue
		}
		m := c[name]
		var labels []string
		for _, l := range slices.Sorted(maps.Keys(m.labels)) {
			if l != "le" && l != "quantile" {
				labels = append(labels, "`"+l+"`")
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, m.kind, strings.Join(labels, ", "), m.help)
	}
	return b.String()
}
