package monitoring

import (
	"context"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// A metric is one that a server exposes.
type metric struct {
	kind   string                     // counter, gauge, histogram or summary
	help   string                     // what it is
	labels map[string]map[string]bool // the values of each label that were seen
}

// A catalogue is what servers expose, by the name of the metric.
type catalogue map[string]metric

// add adds what a server exposes now.
func (c catalogue) add(ctx context.Context, s *server) error {
	body, err := s.scrape(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(body)
	if err != nil {
		return err
	}
	for name, f := range families {
		m, ok := c[name]
		if !ok {
			m = metric{kind: strings.ToLower(f.GetType().String()), help: f.GetHelp(), labels: map[string]map[string]bool{}}
			c[name] = m
		}
		for _, series := range f.GetMetric() {
			m.see(series)
		}
	}
	return nil
}

// see notes the labels of a series.
func (m metric) see(series *dto.Metric) {
	note := func(label, value string) {
		if m.labels[label] == nil {
			m.labels[label] = map[string]bool{}
		}
		m.labels[label][value] = true
	}
	for _, l := range series.GetLabel() {
		note(l.GetName(), l.GetValue())
	}
	for _, b := range series.GetHistogram().GetBucket() {
		note("le", formatFloat(b.GetUpperBound()))
	}
	for _, q := range series.GetSummary().GetQuantile() {
		note("quantile", formatFloat(q.GetQuantile()))
	}
}

// find returns the metric that has a series name, such as x_bucket of the histogram x.
func (c catalogue) find(series string) (metric, bool) {
	if m, ok := c[series]; ok {
		return m, true
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if name, ok := strings.CutSuffix(series, suffix); ok {
			if m, ok := c[name]; ok && (m.kind == "histogram" || m.kind == "summary") {
				return m, true
			}
		}
	}
	return metric{}, false
}
