package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/internal/testenv"
)

// promtool runs Prometheus's tool for checking rules, beside other tests. The test is skipped
// if there is none, unless servers and tools are required.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	t.Parallel()
	path := testenv.Tool(t, "promtool")
	if out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestRules(t *testing.T) {
	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", "monitoring/alerts.yaml")
}

func TestAlertsFire(t *testing.T) {
	testenv.Long(t, "lets promtool evaluate each alert over hours")
	promtool(t, "test", "rules", "monitoring/alerts_test.yaml")
}

// The configuration in README.md is one that Prometheus takes, and names the job that the
// rules ask for.
func TestScrapeConfiguration(t *testing.T) {
	_, rest, _ := strings.Cut(readFile(t, "monitoring/README.md"), "```yaml\n")
	config, _, found := strings.Cut(rest, "```")
	if !found || !strings.Contains(config, "job_name: petstore\n") {
		t.Fatalf("README.md has no configuration with the job petstore, but %q", config)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"alerts.yaml":    readFile(t, "monitoring/alerts.yaml"),
		"petstore.token": "",
		"prometheus.yml": strings.ReplaceAll(config, "# authorization:", "authorization:"),
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	promtool(t, "check", "config", filepath.Join(dir, "prometheus.yml"))
}

// Each alert has a case in which it fires and one in which it does not.
func TestEveryAlertIsTested(t *testing.T) {
	text := readFile(t, "monitoring/alerts_test.yaml")
	for _, a := range readAlerts(t) {
		if !strings.Contains(text, "alertname: "+a.Alert+"\n") {
			t.Errorf("alerts_test.yaml has no case in which %s fires", a.Alert)
		}
		if !strings.Contains(text, "alertname: "+a.Alert+", exp_alerts: []}") {
			t.Errorf("alerts_test.yaml has no case in which %s does not fire", a.Alert)
		}
	}
}

// Prometheus understands every expression of the dashboard.
func TestDashboardQueries(t *testing.T) {
	chosen := strings.NewReplacer("$job", "petstore", "$instance", ".*", "$__rate_interval", "5m", "$__interval", "1m")
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	for _, p := range readPanels(t) {
		for _, target := range p.Targets {
			rules = append(rules, rule{"panel", chosen.Replace(target.Expr)})
		}
	}
	data, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	must(t, err)
	file := filepath.Join(t.TempDir(), "dashboard.yaml") // JSON is YAML too
	must(t, os.WriteFile(file, data, 0o600))
	promtool(t, "check", "rules", "--lint=none", file)
}

// A shown panel is what the reader of the dashboard sees of one.
type shown struct {
	Title   string
	Targets []struct{ Expr, LegendFormat string }
}

func readPanels(t *testing.T) []shown {
	t.Helper()
	var d struct{ Panels []shown }
	must(t, json.Unmarshal([]byte(readFile(t, "monitoring/dashboard.json")), &d))
	return d.Panels
}
