package main_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"go.yaml.in/yaml/v4"

	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
)

// Prometheus adds these metrics, and these labels to all metrics.
var (
	ofPrometheus = map[string][]string{"up": nil, "ALERTS": {"alertname", "alertstate", "severity"}}
	added        = []string{"job", "instance"}
)

// The rules and the dashboard ask for metrics, labels and values that servers expose.
func TestQueriedSeriesExist(t *testing.T) {
	t.Parallel()
	exposed := expose(t)
	for _, q := range queries(t) {
		if len(q.matchers()) == 0 {
			t.Errorf("%s: the test finds no metric in %s", q.where, q.expr)
		}
		labels := slices.Clone(added)
		for series, matchers := range q.matchers() {
			if of, ok := ofPrometheus[series]; ok {
				labels = append(labels, of...)
				continue
			}
			m, ok := exposed[series]
			if !ok {
				t.Errorf("%s asks for %s, which no server exposes", q.where, series)
				continue
			}
			labels = slices.AppendSeq(labels, maps.Keys(m))
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

// expose runs servers, has them do and suffer what they have metrics for, and returns
// what they expose.
func expose(t *testing.T) catalogue {
	t.Helper()
	c := catalogue{}
	for _, exercise := range []func(*testing.T) *process{exerciseAlone, exerciseRedis, exercisePostgres, exerciseTLS} {
		for series := range exercise(t).metrics(t) {
			name, labels, _ := strings.Cut(series, "{")
			if c[name] == nil {
				c[name] = metric{}
			}
			for _, l := range matchersIn(labels) {
				if c[name][l.label] == nil {
					c[name][l.label] = map[string]bool{}
				}
				c[name][l.label][l.value] = true
			}
		}
	}
	return c
}

// exerciseAlone has a server without Redis ban at the second strike.
func exerciseAlone(t *testing.T) *process {
	t.Helper()
	const strict = "plans: {free: [1000/8784h], small: [2/8784h]}\npenalty: {strikes: 1, grace: 0s, ban: 1h, growth: 1, max: 1h, forgive: 1h}\n"
	dir := t.TempDir()
	writeFile(t, dir, "petstore.yaml", strict)
	key := petstore(t, dir, "keys", "create", "--config=petstore.yaml", "--name=test", "--owner=bob", "--plan=free")
	small := petstore(t, dir, "keys", "create", "--config=petstore.yaml", "--name=test", "--owner=ann", "--plan=small")
	p := serve(t, dir, "--config=petstore.yaml")
	for _, status := range []int{200, 200, 429, 429, 429, 429} {
		mustAsk(t, status, "GET", p.api+"/v1/pets", small, "")
	}
	petstore(t, dir, "bans", "unban", "ann", "--admin-listen="+strings.TrimPrefix(p.admin, "http://"))
	mustAsk(t, 401, "GET", p.api+"/v1/pets", "", "")
	mustAsk(t, 401, "GET", p.api+"/v1/pets", "pet_live_wrong", "")
	mustAsk(t, 201, "POST", p.api+"/v1/pets", key, pet)
	mustAsk(t, 200, "GET", p.api+"/v1/pets/1", key, "") // deprecated
	call{key: key, match: "*"}.mustSend(t, 304, p.api)

	writeFile(t, dir, "petstore.yaml", strict+"draft_headers: true\n")
	p.hangUp(t, reloaded)
	writeFile(t, dir, "petstore.yaml", "draft_headers: perhaps\n")
	p.hangUp(t, refusedReload)
	// A write fails.
	must(t, os.Remove(filepath.Join(dir, "petstore.db")))
	mustAsk(t, 503, "POST", p.api+"/v1/pets", key, pet)
	return p
}

// exerciseRedis has a server lose its Redis.
func exerciseRedis(t *testing.T) *process {
	t.Helper()
	redis := miniredis.RunT(t)
	dir := t.TempDir()
	key := roomyKey(t, dir, "bob")
	writeFile(t, dir, "petstore.yaml", "on_redis_failure: closed\nredis: redis://"+redis.Addr())
	p := serve(t, dir, "--config=petstore.yaml")
	mustAsk(t, 200, "GET", p.api+"/v1/pets", key, "")
	redis.Close()
	for range 20 {
		mustAsk(t, 503, "GET", p.api+"/v1/pets", key, "")
	}
	return p
}

// exercisePostgres starts a server on PostgreSQL.
func exercisePostgres(t *testing.T) *process {
	t.Helper()
	dir := t.TempDir()
	database := "--database=" + postgrestest.Database(t)
	key := petstore(t, dir, "keys", "create", "--name=test", "--owner=bob", "--plan=free", database)
	p := serve(t, dir, "--usage-file=usage.db", database)
	mustAsk(t, 200, "GET", p.api+"/v1/pets", key, "")
	return p
}

// exerciseTLS starts a server with a certificate.
func exerciseTLS(t *testing.T) *process {
	t.Helper()
	dir := t.TempDir()
	writeCertificate(t, dir)
	writeFile(t, dir, "petstore.yaml", "tls_cert: cert.pem\ntls_key: key.pem\n")
	p := serve(t, dir, "--config=petstore.yaml")
	if left := p.metrics(t)[expiry] - float64(time.Now().Unix()); left <= 3600-patience.Seconds() || left > 3600 {
		t.Errorf("%s is in %v seconds, want an hour", expiry, left)
	}
	return p
}

// check says what is wrong with a condition on a label of the metric: the metric does
// not have the label, or no series can meet the condition. It returns "" if nothing is.
func (m metric) check(c matcher) string {
	if slices.Contains(added, c.label) {
		return ""
	}
	values, ok := m[c.label]
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

// A metric is the values of each label that were seen of a series, such as x_bucket.
type metric map[string]map[string]bool

// A catalogue is what servers expose, by the name of the series.
type catalogue map[string]metric

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
	var file struct {
		Groups []struct {
			Name  string
			Rules []alert
		}
	}
	must(t, yaml.Load([]byte(readFile(t, "monitoring/alerts.yaml")), &file, yaml.WithKnownFields()))
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
