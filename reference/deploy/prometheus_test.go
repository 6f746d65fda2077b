package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/internal/testenv"
)

// promtool accepts what Prometheus reads, with the alert rules beside it.
func TestPrometheusAcceptsItsFiles(t *testing.T) {
	promtool := testenv.Tool(t, "promtool")
	t.Parallel()
	args := []string{"check", "config"}
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
			must(t, os.WriteFile(path, []byte(content), 0o600))
		}
		args = append(args, filepath.Join(dir, "prometheus.yaml"))
		if !strings.Contains(config, "job_name: petstore\n") {
			t.Errorf("%s has no job petstore, for which the rules ask", name)
		}
	}
	out, err := exec.Command(promtool, args...).CombinedOutput()
	if err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), "rules found") { // by the file of Compose
		t.Errorf("no rules are loaded:\n%s", out)
	}
}
