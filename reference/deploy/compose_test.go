//go:build long

package deploy_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// project loads compose.yaml as docker compose does: against the schema of Compose files,
// with all references.
func project(t *testing.T) *types.Project {
	t.Helper()
	dir, err := filepath.Abs("compose")
	must(t, err)
	p, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  dir,
		ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(dir, "compose.yaml")}},
		Environment: types.Mapping{},
	})
	must(t, err)
	return p
}

// environment returns the variables of a service.
func environment(s types.ServiceConfig) map[string]string {
	env := make(map[string]string)
	for name, value := range s.Environment {
		env[name] = *value
	}
	return env
}

func TestTheServerInCompose(t *testing.T) {
	p := project(t)
	s := p.Services[binary]
	settings := load(t, "compose/petstore/petstore.yaml", environment(s))
	if len(settings.Redis) != 1 || !strings.HasPrefix(settings.Database, "postgres://") {
		t.Errorf("the server uses database %s and Redis %v, want those of the file", settings.Database, settings.Redis)
	}
	if grace := time.Duration(*s.StopGracePeriod); grace < stopTime(settings) {
		t.Errorf("stop_grace_period is %v, the server needs up to %v", grace, stopTime(settings))
	}
	if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) {
		t.Errorf("the root file system is read-only: %t; capabilities without: %q; want neither", s.ReadOnly, s.CapDrop)
	}
	targets := []string{port(settings.Listen), port(settings.AdminListen)}
	for _, published := range s.Ports {
		if !slices.Contains(targets, strconv.Itoa(int(published.Target))) {
			t.Errorf("port %d is published, the server listens on %q", published.Target, targets)
		}
	}
	// The settings are the folder that PETSTORE_CONFIG is in.
	if !slices.ContainsFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool {
		return v.ReadOnly && v.Target == path.Dir(environment(s)["PETSTORE_CONFIG"]) && filepath.Base(v.Source) == "petstore"
	}) {
		t.Errorf("the server has %v, want its settings", s.Volumes)
	}
	if s.Build == nil || filepath.Clean(s.Build.Context) != absolute(t, root) {
		t.Errorf("the image is built in %+v, want the root of the repository", s.Build)
	}
	// Requests to a published port come from the gateway.
	gateway := p.Networks["edge"].Ipam.Config[0].Gateway
	if len(settings.HTTP.TrustedProxies) != 1 || settings.HTTP.TrustedProxies[0].String() != gateway+"/32" {
		t.Errorf("trusted_proxies is %v, the gateway %s", settings.HTTP.TrustedProxies, gateway)
	}
	for _, name := range []string{"postgres", "redis"} {
		if d := s.DependsOn[name]; d.Condition != types.ServiceConditionHealthy || p.Services[name].HealthCheck == nil {
			t.Errorf("petstore starts when %s is %q, want healthy", name, d.Condition)
		}
	}
}

// Nothing is published beyond this machine, and no secret is in the file.
func TestComposeIsClosed(t *testing.T) {
	p := project(t)
	if !p.Networks["data"].Internal {
		t.Error("the network of the databases has a route to elsewhere")
	}
	for name, s := range p.Services {
		for _, published := range s.Ports {
			if published.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %s is published on %q, want loopback", name, published.Published, published.HostIP)
			}
		}
		for variable, value := range environment(s) {
			if word := strings.ToLower(variable); strings.Contains(word, "password") || strings.Contains(word, "token") {
				if !strings.HasPrefix(value, "/run/secrets/") {
					t.Errorf("%s: %s is not a file with a secret", name, variable)
				}
			}
			if secret, ok := strings.CutPrefix(value, "/run/secrets/"); ok && !hasSecret(s, secret) {
				t.Errorf("%s: %s is %s, and the service does not have that secret", name, variable, value)
			}
		}
		if s.Image == "" || !strings.Contains(s.Image, ":") || strings.HasSuffix(s.Image, ":latest") {
			t.Errorf("%s: the image is %q, want a version", name, s.Image)
		}
		for _, v := range s.Volumes {
			if v.Type == types.VolumeTypeBind {
				missing(t, v.Source)
			}
		}
	}
}

func hasSecret(s types.ServiceConfig, name string) bool {
	return slices.ContainsFunc(s.Secrets, func(c types.ServiceSecretConfig) bool { return c.Source == name })
}

// make-secrets creates each secret once, and they fit together.
func TestMakeSecrets(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skipf("skipped: %v", err)
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "make-secrets")
	must(t, os.WriteFile(script, []byte(read(t, "compose/make-secrets")), 0o600))
	run := func() string {
		t.Helper()
		out, err := exec.Command(sh, script).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	run()
	secrets := make(map[string]string)
	for name, s := range project(t).Secrets {
		if want := "secrets/" + name; !strings.HasSuffix(filepath.ToSlash(s.File), want) {
			t.Errorf("secret %s is in %s, want %s", name, s.File, want)
		}
		secrets[name] = strings.TrimSpace(read(t, filepath.Join(dir, "secrets", name)))
	}
	if want := "postgres://petstore:" + secrets["postgres_password"] + "@postgres:5432/petstore"; secrets["database"] != want || len(secrets["postgres_password"]) < 32 {
		t.Errorf("the database is at %s, want %s", secrets["database"], want)
	}
	if password, ok := strings.CutPrefix(secrets["redis_conf"], "requirepass "); !ok || secrets["redis"] != "redis://:"+password+"@redis:6379" {
		t.Errorf("Redis has %q, and is called at %s", secrets["redis_conf"], secrets["redis"])
	}
	if out := run(); out != "" {
		t.Errorf("the second time, it printed %q, want that it changes nothing", out)
	}
	info, err := os.Stat(filepath.Join(dir, "secrets"))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder of the secrets has mode %v, %v; want that only its owner enters it", info.Mode(), err)
	}
}

// In compose.yaml, each file is where another one expects it.
func TestMonitoringIsMounted(t *testing.T) {
	p := project(t)
	for target, source := range map[string]string{ // in the container, and here
		"/etc/prometheus/prometheus.yaml":       "compose/prometheus/prometheus.yaml",
		"/etc/prometheus/alerts.yaml":           "../monitoring/alerts.yaml",
		"/etc/grafana/provisioning/datasources": "compose/grafana/datasources",
		"/etc/grafana/provisioning/dashboards":  "compose/grafana/dashboards",
		"/etc/grafana/dashboards/petstore.json": "../monitoring/dashboard.json",
	} {
		service := strings.Split(target, "/")[2]
		if !slices.ContainsFunc(p.Services[service].Volumes, func(v types.ServiceVolumeConfig) bool {
			return v.Target == target && v.Source == absolute(t, source)
		}) {
			t.Errorf("%s has %v, want %s at %s", service, p.Services[service].Volumes, source, target)
		}
	}
	for file, line := range map[string]string{
		"compose/grafana/dashboards/petstore.yaml":    "path: /etc/grafana/dashboards\n",
		"compose/grafana/datasources/prometheus.yaml": "url: http://prometheus:9090\n",
	} {
		if !strings.Contains(read(t, file), line) {
			t.Errorf("%s has no %q", file, line)
		}
	}
}

func absolute(t *testing.T, name string) string {
	t.Helper()
	abs, err := filepath.Abs(name)
	must(t, err)
	return abs
}
