package deploy_test

import (
	"fmt"
	"go/version"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// An instruction is one of a Dockerfile, with its continuation lines.
type instruction struct{ name, args string }

// dockerfile returns the instructions of each stage.
func dockerfile(t *testing.T) (stages [][]instruction) {
	t.Helper()
	text := regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(read(t, root+"/Dockerfile"), "")
	text = regexp.MustCompile(`\\\n\s*`).ReplaceAllString(text, "")
	stages = [][]instruction{nil} // before the first FROM
	for line := range strings.Lines(text) {
		name, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch name {
		case "":
			continue
		case "FROM":
			stages = append(stages, nil)
		}
		last := len(stages) - 1
		stages[last] = append(stages[last], instruction{name, args})
	}
	return stages
}

// args returns the arguments of the instructions with a name.
func args(stage []instruction, name string) (all []string) {
	for _, i := range stage {
		if i.name == name {
			all = append(all, i.args)
		}
	}
	return all
}

// The image runs as the user that the manifests name, and asks only whether the process
// answers.
func TestTheImage(t *testing.T) {
	stages := dockerfile(t)
	image := stages[len(stages)-1]
	user := fmt.Sprintf("%d:%d", uid, uid) // a number, so that runAsNonRoot can be checked
	if got := args(image, "USER"); !slices.Equal(got, []string{user}) {
		t.Errorf("USER is %q, want %s", got, user)
	}
	if got := args(image, "HEALTHCHECK"); len(got) != 1 || !strings.HasSuffix(got[0], `"health"]`) {
		t.Errorf("HEALTHCHECK is %q, want petstore health without --ready", got)
	}
}

// The binary is static, and the same wherever it is built.
func TestTheBuild(t *testing.T) {
	stages := dockerfile(t)
	build := stages[1]
	if env := strings.Join(args(build, "ENV"), " "); !strings.Contains(env, "CGO_ENABLED=0") || !strings.Contains(env, "GOWORK=off") {
		t.Errorf("ENV is %q, want no cgo and no workspace", env)
	}
	command := strings.Join(args(build, "RUN"), "\n")
	for _, want := range []string{"-trimpath", "-buildvcs=false", "GOOS=$TARGETOS GOARCH=$TARGETARCH", "go build -C reference"} {
		if !strings.Contains(command, want) {
			t.Errorf("the build lacks %s: %s", want, command)
		}
	}
	checkLinkerVariables(t, command)
	needs := strings.Replace(regexp.MustCompile(`(?m)^go \S+$`).FindString(read(t, "../go.mod")), " ", "", 1)
	has := regexp.MustCompile(`(?m)^ARG GO_VERSION=(\S+)$`).FindStringSubmatch(read(t, root+"/Dockerfile"))
	if has == nil || version.Compare("go"+has[1], needs) < 0 {
		t.Errorf("the image is built with Go %q, and go.mod needs %s", has, needs)
	}
}

// checkLinkerVariables checks that the variables which -X sets exist: the linker ignores
// others.
func checkLinkerVariables(t *testing.T, command string) {
	t.Helper()
	source := read(t, "../internal/build/build.go")
	for _, name := range []string{"version", "revision", "date"} {
		if !regexp.MustCompile(`-X \S*build\.` + name + `=`).MatchString(command) {
			t.Errorf("no -X sets %s: %s", name, command)
		}
		if !regexp.MustCompile(`(?m)^\t` + name + ` +string\b`).MatchString(source) {
			t.Errorf("reference/internal/build has no variable %s", name)
		}
	}
	if !strings.Contains(command, "github.com/animalstore/gatehouse/reference/internal/build") {
		t.Errorf("-X names another package: %s", command)
	}
}

// release is what the tests read of .goreleaser.yaml. The command goreleaser check knows
// the rest.
type release struct {
	Before struct{ Hooks []string }
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

// A release has the same binary as the image, and all files that it names. A package installs the
// settings where the unit reads them.
func TestTheRelease(t *testing.T) {
	var r release
	must(t, yaml.Load([]byte(read(t, root+"/.goreleaser.yaml")), &r))
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
		if !slices.Contains(r.Before.Hooks, "reference/licences.sh "+f.Src) { // which makes the file
			missing(t, root+"/"+f.Src)
		}
	}
	unit, packaged := read(t, "systemd/petstore.service"), r.Nfpms[0]
	var installed []string
	for _, f := range packaged.Contents {
		installed = append(installed, f.Dst)
	}
	if settings := "/etc/petstore/petstore.yaml"; !slices.Contains(installed, settings) || !strings.Contains(unit, "--config "+settings) {
		t.Errorf("the package installs %q, and the unit starts something else", installed)
	}
	// systemd looks for a command without a folder in /usr/local/bin, then in /usr/bin.
	if packaged.Bindir != "/usr/bin" || !strings.Contains(unit, "\nExecStart=petstore ") {
		t.Errorf("the package installs the binary in %s, and the unit starts another", packaged.Bindir)
	}
}
