//go:build long

package deploy_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/reference/internal/config"
)

// decode decodes a manifest, and accepts no field that Kubernetes does not know.
func decode[T any](t *testing.T, name string) *T {
	t.Helper()
	text, err := yaml.YAMLToJSONStrict([]byte(read(t, name)))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	object := new(T)
	// Like the API of Kubernetes: the case of letters counts.
	unknown, err := json.UnmarshalStrict(text, object)
	if err := errors.Join(append(unknown, err)...); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return object
}

// kustomize returns what kubectl applies of a folder, and the image that its pods run.
func kustomize(t *testing.T, dir string) (objects, image string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), testenv.Tool(t, "kubectl"), "kustomize", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl kustomize %s: %v\n%s", dir, err, out)
	}
	images := regexp.MustCompile(`(?m)^ +image: (\S+)$`).FindAllStringSubmatch(string(out), -1)
	if len(images) != 1 {
		t.Fatalf("%s has the images %q, want one", dir, images)
	}
	return string(out), images[0][1]
}

// The servers and the job run the image that compose builds. The ConfigMap keeps its name, so
// that pods see a change of it.
func TestKustomizations(t *testing.T) {
	server, image := kustomize(t, "kubernetes")
	if !regexp.MustCompile(`(?s)kind: ConfigMap\nmetadata:\n[^-]*?\n  name: petstore\n`).MatchString(server) {
		t.Errorf("there is no ConfigMap with the name petstore in\n%s", server)
	}
	_, ofJob := kustomize(t, "kubernetes/migrate")
	if built := project(t).Services[binary].Image; image != built || ofJob != built {
		t.Errorf("compose builds %s, the servers run %s and the job %s", built, image, ofJob)
	}
}

// The overlays of reference/docs/DEPLOYING.md change what they name. An overlay of a folder
// sees the names after that folder has replaced them: kustomize ignores an image with another
// name.
func TestOverlaysInTheDocumentation(t *testing.T) {
	dir := t.TempDir()
	must(t, os.CopyFS(filepath.Join(dir, "kubernetes"), os.DirFS("kubernetes")))
	overlay := filepath.Join(dir, "overlay")
	must(t, os.Mkdir(overlay, 0o700))
	must(t, os.WriteFile(filepath.Join(overlay, "petstore.yaml"), []byte("listen: ':7070'\n"), 0o600))
	blocks := regexp.MustCompile("(?s)```yaml\n([^`]*kind: Kustomization.*?)```").FindAllStringSubmatch(read(t, root+"/reference/docs/DEPLOYING.md"), -1)
	if len(blocks) != 2 {
		t.Fatalf("reference/docs/DEPLOYING.md has %d overlays, want one of the servers and one of the job", len(blocks))
	}
	patch := regexp.MustCompile("(?s)```yaml\n(patches:.*?)```").FindStringSubmatch(read(t, root+"/reference/docs/DEPLOYING.md"))
	if patch == nil {
		t.Fatal("reference/docs/DEPLOYING.md has no patch of the job for two users of PostgreSQL")
	}
	blocks[1][1] += patch[1]
	for i, changed := range []string{"listen: ':7070'", "secretName: petstore-migrate"} {
		must(t, os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(blocks[i][1]), 0o600))
		if objects, image := kustomize(t, overlay); image != "images.example/petstore:v1.2.3" || !strings.Contains(objects, changed) {
			t.Errorf("with the overlay\n%s\nthe image is %s, want v1.2.3 and %q in\n%s", blocks[i][1], image, changed, objects)
		}
	}
}

func deployment(t *testing.T) (*appsv1.Deployment, corev1.Container, *config.Config) {
	t.Helper()
	d := decode[appsv1.Deployment](t, "kubernetes/deployment.yaml")
	c := d.Spec.Template.Spec.Containers[0]
	return d, c, load(t, "kubernetes/petstore.yaml", variables(c))
}

// variables returns the environment of a container, for the server.
func variables(c corev1.Container) map[string]string {
	env := make(map[string]string)
	for _, v := range c.Env {
		env[v.Name] = v.Value
	}
	return env
}

// Pods run under the restricted Pod Security Standard, and write nothing.
func TestPodsAreRestricted(t *testing.T) {
	d, job := decode[appsv1.Deployment](t, "kubernetes/deployment.yaml"), decode[batchv1.Job](t, "kubernetes/migrate/job.yaml")
	for name, pod := range map[string]corev1.PodSpec{"server": d.Spec.Template.Spec, "job": job.Spec.Template.Spec} {
		s := pod.SecurityContext
		if s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.RunAsUser == nil || *s.RunAsUser != uid ||
			s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: the pod's securityContext is %+v, want user %d and the runtime's seccomp profile", name, s, uid)
		}
		if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
			t.Errorf("%s: the pod gets a token of the API of Kubernetes, which it does not use", name)
		}
		for _, c := range pod.Containers {
			s := c.SecurityContext
			if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
				s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
				s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
				t.Errorf("%s: the securityContext of %s is %+v, want no privileges and no writing", name, c.Name, s)
			}
			if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
				t.Errorf("%s: %s asks for %+v, want processor and memory, and a limit of memory", name, c.Name, c.Resources)
			}
			if c.Image != binary {
				t.Errorf("%s: the image is %s, which no kustomization replaces", name, c.Image)
			}
		}
	}
}

// The probes ask what the server answers without its token.
func TestProbes(t *testing.T) {
	_, c, settings := deployment(t)
	ports := make(map[string]string)
	for _, p := range c.Ports {
		ports[p.Name] = strconv.Itoa(int(p.ContainerPort))
	}
	if ports["http"] != port(settings.Listen) || ports["admin"] != port(settings.AdminListen) {
		t.Errorf("the container has ports %v, the server listens on %s and %s", ports, settings.Listen, settings.AdminListen)
	}
	for name, tt := range map[string]struct {
		probe *corev1.Probe
		path  string
	}{"startup": {c.StartupProbe, health}, "liveness": {c.LivenessProbe, health}, "readiness": {c.ReadinessProbe, ready}} {
		if tt.probe == nil || tt.probe.HTTPGet == nil || tt.probe.HTTPGet.Path != tt.path || tt.probe.HTTPGet.Port.StrVal != "admin" {
			t.Errorf("the %s probe is %v, want %s of the admin listener", name, tt.probe, tt.path)
		}
	}
	if c.ReadinessProbe.TimeoutSeconds <= 3 {
		t.Errorf("the readiness probe waits %ds; the checks of /readyz take up to 3s", c.ReadinessProbe.TimeoutSeconds)
	}
}

// A pod that stops has time for its last requests and saves.
func TestPodsStopInTime(t *testing.T) {
	d, c, settings := deployment(t)
	grace := time.Duration(*d.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
	if need := stopTime(settings); grace < need {
		t.Errorf("terminationGracePeriodSeconds is %v, the server needs up to %v", grace, need)
	}
	if settings.HTTP.DrainDelay < time.Duration(c.ReadinessProbe.PeriodSeconds)*time.Second {
		t.Errorf("drain_delay is %v, less than the %ds between two readiness probes", settings.HTTP.DrainDelay, c.ReadinessProbe.PeriodSeconds)
	}
	if u := d.Spec.Strategy.RollingUpdate; u == nil || u.MaxUnavailable == nil || u.MaxUnavailable.IntValue() != 0 {
		t.Errorf("a rolling update is %+v, want that no replica is taken away before another is ready", u)
	}
}

// All files that the server and the job read are mounted.
func TestPodsHaveTheirFiles(t *testing.T) {
	d, c, settings := deployment(t)
	if settings.Migrate != config.MigrateManual {
		t.Errorf("migrate is %s, but there is a job for it", settings.Migrate)
	}
	job := decode[batchv1.Job](t, "kubernetes/migrate/job.yaml")
	migrate := job.Spec.Template.Spec.Containers[0]
	if !slices.Equal(migrate.Args, []string{"migrate"}) {
		t.Errorf("the job runs petstore %q", migrate.Args)
	}
	for name, x := range map[string]struct {
		pod corev1.PodSpec
		c   corev1.Container
	}{"server": {d.Spec.Template.Spec, c}, "job": {job.Spec.Template.Spec, migrate}} {
		for variable, file := range variables(x.c) {
			if strings.HasPrefix(variable, "PETSTORE_") && !slices.ContainsFunc(x.c.VolumeMounts, func(m corev1.VolumeMount) bool {
				return strings.HasPrefix(file, m.MountPath+"/") && slices.ContainsFunc(x.pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
			}) {
				t.Errorf("%s: %s is %s, which is not mounted", name, variable, file)
			}
		}
	}
}

// Every selector finds the pods of the servers, and only the network policy those of the
// job too.
func TestSelectors(t *testing.T) {
	d := decode[appsv1.Deployment](t, "kubernetes/deployment.yaml")
	job := decode[batchv1.Job](t, "kubernetes/migrate/job.yaml")
	service := decode[corev1.Service](t, "kubernetes/service.yaml")
	budget := decode[policyv1.PodDisruptionBudget](t, "kubernetes/poddisruptionbudget.yaml")
	network := decode[networkingv1.NetworkPolicy](t, "kubernetes/networkpolicy.yaml")
	server, migrate := labels.Set(d.Spec.Template.Labels), labels.Set(job.Spec.Template.Labels)
	check := func(name string, s *metav1.LabelSelector, also bool) {
		t.Helper()
		selector, err := metav1.LabelSelectorAsSelector(s)
		if err != nil || !selector.Matches(server) || selector.Matches(migrate) != also {
			t.Errorf("%s selects %v, %v", name, selector, err)
		}
	}
	check("the deployment", d.Spec.Selector, false)
	check("the service", &metav1.LabelSelector{MatchLabels: service.Spec.Selector}, false)
	check("the budget", budget.Spec.Selector, false)
	check("the network policy", &network.Spec.PodSelector, true)
	for _, c := range d.Spec.Template.Spec.TopologySpreadConstraints {
		check("topology "+c.TopologyKey, c.LabelSelector, false)
	}
	if target := service.Spec.Ports[0].TargetPort.StrVal; target != "http" {
		t.Errorf("the service has port %s of the pods, want http", target)
	}
	if m := budget.Spec.MaxUnavailable; m == nil || m.IntValue() != 1 || *d.Spec.Replicas < 2 {
		t.Errorf("the budget is %v of %d replicas, want that one can be away and others serve", m, *d.Spec.Replicas)
	}
}
