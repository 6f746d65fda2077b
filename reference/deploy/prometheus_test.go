package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// promtool accepts what Prometheus reads, with the alert rules beside it.
func TestPrometheusAcceptsItsFiles(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("GATEHOUSE_REQUIRE_SERVERS") == "1" {
			t.Fatal(err)
		}
		t.Skipf("skipped: %v; it comes with Prometheus", err)
	}
	for _, name := range []string{"compose/prometheus/prometheus.yaml", "kubernetes/prometheus.yaml"} {
		dir := t.TempDir()
		token := filepath.Join(dir, "token")
		config := regexp.MustCompile(`(?m)^( +credentials_file: ).*$`).ReplaceAllString(read(t, name), "${1}"+token)
		// Debian's promtool is built without the API of Kubernetes.
		config = regexp.MustCompile(`(?ms)^ +kubernetes_sd_configs:\n.*?(^ +relabel_configs:\n)`).ReplaceAllString(config, "${1}")
		for path, content := range map[string]string{
			filepath.Join(dir, "prometheus.yaml"): config,
			filepath.Join(dir, "alerts.yaml"):     read(t, "../monitoring/alerts.yaml"),
			token:                                 "0123456789abcdef",
		} {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out, err := exec.Command(promtool, "check", "config", filepath.Join(dir, "prometheus.yaml")).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		if strings.HasPrefix(name, "compose/") && !strings.Contains(string(out), "rules found") {
			t.Errorf("%s loads no rules:\n%s", name, out)
		}
		if !strings.Contains(config, "job_name: petstore\n") {
			t.Errorf("%s has no job petstore, for which the rules ask", name)
		}
	}
}

// In compose.yaml, each file is where another one expects it.
func TestMonitoringIsMounted(t *testing.T) {
	p := project(t)
	for service, files := range map[string]map[string]string{ // file here by file in the container
		"prometheus": {
			"/etc/prometheus/prometheus.yaml": "compose/prometheus/prometheus.yaml",
			"/etc/prometheus/alerts.yaml":     "../monitoring/alerts.yaml",
		},
		"grafana": {
			"/etc/grafana/provisioning/datasources": "compose/grafana/datasources",
			"/etc/grafana/provisioning/dashboards":  "compose/grafana/dashboards",
			"/etc/grafana/dashboards/petstore.json": "../monitoring/dashboard.json",
		},
	} {
		got := make(map[string]string)
		for _, v := range p.Services[service].Volumes {
			got[v.Target] = v.Source
		}
		for target, source := range files {
			if got[target] != absolute(t, source) {
				t.Errorf("%s has %q at %s, want %s", service, got[target], target, source)
			}
		}
	}
	if !strings.Contains(read(t, "compose/grafana/dashboards/petstore.yaml"), "path: /etc/grafana/dashboards\n") {
		t.Error("Grafana does not load /etc/grafana/dashboards")
	}
	if !strings.Contains(read(t, "compose/grafana/datasources/prometheus.yaml"), "url: http://prometheus:9090\n") {
		t.Error("Grafana does not ask prometheus:9090")
	}
}
