package release

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/internal/testenv"
)

var must = testcheck.NoError

var update = flag.Bool("update", false, "write testdata/consumers.txt instead of comparing it")

const golden = "testdata/consumers.txt"

const header = `# The modules that a service has in its module graph (go list -m all) when it
# requires one released module of Gatehouse and imports all public packages of it.
# A module in this list has no effect on the service's binary unless the service
# imports a package of it. Renew this file with
#
#	go test ./internal/release -update
`

// Released modules can be installed, they compile, and they bring no module that
// is not written down.
func TestConsumers(t *testing.T) {
	testenv.Long(t, "installs every module from a release")
	repo := scratch(t)
	mustRun(t, repo, "./.ci/release", version)
	if _, err := run(repo, "./.ci/release", version); err == nil || !strings.Contains(err.Error(), "v0.99.0 exists") {
		t.Errorf("the same version again: %v, want an error that names the tag", err)
	}
	all := tagged(t, repo)
	needCache(t, repo, all)
	useProxy(t, proxy(t, repo, all))
	var graphs strings.Builder
	graphs.WriteString(header)
	for _, m := range all {
		fmt.Fprintf(&graphs, "\n== %s\n%s\n", m.path, graph(t, m, publicPackages(t, repo, m)))
	}
	if *update {
		write(t, golden, []byte(graphs.String()))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if diff := cmp.Diff(string(want), graphs.String()); diff != "" {
		t.Errorf("consumers have other modules in their graphs than %s says (-want +got):\n%s", golden, diff)
	}
}

// needCache skips the test if the module cache lacks what a module requires. Tests
// in the workspace use the highest version that any module requires, so that the
// cache of a new machine may lack the lower one that a consumer gets. Where servers
// are required, as .ci/run does, this is required as well.
func needCache(t *testing.T, repo string, all []module) {
	t.Helper()
	t.Setenv("GOWORK", "off")
	t.Setenv("GOPROXY", "off")
	for _, m := range all {
		if _, err := run(filepath.Join(repo, filepath.FromSlash(m.dir)), "go", "list", "-deps", "-test", "./..."); err != nil {
			if testenv.Required() {
				t.Fatal(err)
			}
			t.Skipf("skipped: make tidy fills the module cache with what %s requires: %v", m.path, err)
		}
	}
}

// useProxy has the go command take Gatehouse from the directory, all other modules
// from the module cache, and nothing from the network. The test has a module cache
// of its own, so that the version gets into no other.
func useProxy(t *testing.T, dir string) {
	downloaded := filepath.Join(mustRun(t, ".", "go", "env", "GOMODCACHE"), "cache", "download")
	t.Setenv("GOPROXY", fileURL(dir)+","+fileURL(downloaded))
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOFLAGS", "-mod=mod -modcacherw -trimpath")
	t.Setenv("GOSUMDB", "off")
	t.Setenv("GOTOOLCHAIN", "local")
	t.Setenv("GOWORK", "off")
	t.Setenv("GOENV", "off")
	for _, name := range []string{"GOPRIVATE", "GONOPROXY", "GOINSECURE", "GOVCS"} {
		t.Setenv(name, "")
	}
}

func fileURL(dir string) string {
	dir = filepath.ToSlash(dir)
	if runtime.GOOS == "windows" {
		dir = "/" + dir
	}
	return "file://" + dir
}

// publicPackages lists the packages of a module that a consumer can import.
func publicPackages(t *testing.T, repo string, m module) []string {
	t.Helper()
	dir := filepath.Join(repo, filepath.FromSlash(m.dir))
	var public []string
	for p := range strings.FieldsSeq(mustRun(t, dir, "go", "list", "-mod=readonly", "./...")) {
		if !strings.Contains(p+"/", "/internal/") {
			public = append(public, p)
		}
	}
	return public
}

// graph requires a module as a service would, builds a package that imports the
// given ones, and returns the modules in the service's graph.
func graph(t *testing.T, m module, imports []string) string {
	t.Helper()
	dir := t.TempDir()
	source := "package service\n\n"
	for _, p := range imports {
		source += fmt.Sprintf("import _ %q\n", p)
	}
	write(t, filepath.Join(dir, "service.go"), []byte(source))
	mustRun(t, dir, "go", "mod", "init", "example.com/service")
	mustRun(t, dir, "go", "get", m.path+"@"+version)
	mustRun(t, dir, "go", "build", "./...")
	// With -e it does not look for modules in the list that nothing needs to load.
	return mustRun(t, dir, "go", "list", "-m", "-e", "all")
}
