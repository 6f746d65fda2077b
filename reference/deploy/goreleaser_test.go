package deploy_test

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// release is what the tests read of .goreleaser.yaml. The command goreleaser check knows
// the rest.
type release struct {
	Builds []struct {
		Dir, Main string
		Env       []string
		Flags     []string
		Ldflags   []string
		Goos      []string
		Goarch    []string
	}
	Archives []struct {
		Files []struct{ Src, Dst string }
	}
	Nfpms []struct {
		Bindir   string
		Contents []struct{ Src, Dst string }
	}
}

// A release has the same binary as the image, and all files that it names.
func TestTheRelease(t *testing.T) {
	var r release
	if err := yaml.Unmarshal([]byte(read(t, root+"/.goreleaser.yaml")), &r); err != nil {
		t.Fatal(err)
	}
	b := r.Builds[0]
	missing(t, root+"/"+b.Dir+"/main.go")
	build := dockerfile(t)[1]
	env, command := strings.Join(args(build, "ENV"), " "), strings.Join(args(build, "RUN"), " ")
	for _, v := range b.Env {
		if !strings.Contains(env, v) {
			t.Errorf("a release is built with %s, the image with %s", v, env)
		}
	}
	for _, flag := range append(b.Flags, b.Ldflags[0]) {
		if !strings.Contains(command, flag) {
			t.Errorf("a release is built with %s, the image with %s", flag, command)
		}
	}
	checkLinkerVariables(t, strings.Join(b.Ldflags, " "))
	if !slices.Equal(b.Goos, []string{"linux", "darwin", "windows"}) || !slices.Equal(b.Goarch, []string{"amd64", "arm64"}) {
		t.Errorf("a release is built for %q on %q", b.Goos, b.Goarch)
	}
	for _, f := range append(r.Archives[0].Files, r.Nfpms[0].Contents...) {
		missing(t, root+"/"+f.Src)
	}
}

// A package installs the settings where the unit reads them.
func TestThePackage(t *testing.T) {
	var r release
	if err := yaml.Unmarshal([]byte(read(t, root+"/.goreleaser.yaml")), &r); err != nil {
		t.Fatal(err)
	}
	unit := read(t, "systemd/petstore.service")
	var installed []string
	for _, f := range r.Nfpms[0].Contents {
		installed = append(installed, f.Dst)
	}
	if settings := "/etc/petstore/petstore.yaml"; !slices.Contains(installed, settings) || !strings.Contains(unit, "--config "+settings) {
		t.Errorf("the package installs %q, and the unit starts something else", installed)
	}
	// systemd looks for a command without a folder in /usr/local/bin, then in /usr/bin.
	if r.Nfpms[0].Bindir != "/usr/bin" || !strings.Contains(unit, "\nExecStart=petstore ") {
		t.Errorf("the package installs the binary in %s, and the unit starts another", r.Nfpms[0].Bindir)
	}
}
