package dashboard

// A row is a titled part of the dashboard.
type row struct {
	title  string
	panels []panel
}

// A panel shows the results of some queries.
type panel struct {
	title       string
	description string // what is shown, and what to look for
	unit        string // of Grafana, such as "reqps" or "s"
	stat        bool   // one number instead of lines over time
	width       int    // of 24 columns
	stack       bool   // lines on top of each other
	most        float64
	// From warning on a value is orange, from critical on it is red. Zero: no colour.
	// With low, small values are the bad ones: below critical a value is red.
	warning, critical float64
	low               bool
	texts             map[string]string // shown instead of a value
	none              string            // shown if there is no value
	coloured          bool              // lines have the colours of their names
	queries           []query
}

// count is the unit of whole numbers.
const count = "none"

// A query is an expression in PromQL, and the name of each line of its result.
type query struct {
	expr   string
	legend string // with labels such as {{instance}}
}

// colours are the colours of lines that mean the same in every panel.
var colours = map[string]string{
	"2xx": "green", "3xx": "blue", "4xx": "yellow", "429": "orange", "5xx": "red",
	"allowed": "green", "limited": "orange", "banned": "red", "suspended": "yellow", "undecided": "purple",
	"authenticated": "green", "missing": "blue", "invalid": "orange", "repeated": "yellow", "unavailable": "red",
}

// selector selects the series of the servers that the reader has chosen.
const selector = `job="$job", instance=~"$instance"`

// of returns a metric of the chosen servers. It may have further conditions, such as
// `le="0.5"`.
func of(metric string, conditions ...string) string {
	s := metric + "{" + selector
	for _, c := range conditions {
		s += ", " + c
	}
	return s + "}"
}

// rate returns how much a counter grows in a second.
func rate(metric string, conditions ...string) string {
	return "rate(" + of(metric, conditions...) + "[$__rate_interval])"
}

// sum returns the sum of an expression for each value of a label, or of everything if
// there is no label.
func sum(label, expr string) string {
	if label == "" {
		return "sum(" + expr + ")"
	}
	return "sum by (" + label + ") (" + expr + ")"
}

// quantile returns a quantile of a histogram for each value of a label.
func quantile(q, label, histogram string, conditions ...string) string {
	by := "le"
	if label != "" {
		by += ", " + label
	}
	return "histogram_quantile(" + q + ", sum by (" + by + ") (" + rate(histogram+"_bucket", conditions...) + "))"
}
