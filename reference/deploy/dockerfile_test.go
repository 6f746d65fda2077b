package deploy_test

import (
	"encoding/json"
	"fmt"
	"go/version"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
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

// The image has the binary and the certificates, and nothing that could run besides.
func TestTheImage(t *testing.T) {
	stages := dockerfile(t)
	if len(stages) != 3 {
		t.Fatalf("the Dockerfile has %d stages, want one that builds and one that runs", len(stages)-1)
	}
	image := stages[2]
	for name, want := range map[string][]string{
		"FROM":       {"scratch"},
		"USER":       {fmt.Sprintf("%d:%d", uid, uid)}, // a number, so that runAsNonRoot can be checked
		"RUN":        nil,
		"STOPSIGNAL": {"SIGTERM"},
		"EXPOSE":     {"8080 9090"},
		"VOLUME":     {"/var/lib/petstore"},
		"WORKDIR":    {"/var/lib/petstore"}, // where the default of the setting database is
		"ENV":        nil,                   // a variable would override the settings file
		"ENTRYPOINT": {`["/usr/local/bin/petstore"]`},
		"CMD":        {`["serve"]`},
		"COPY": {
			"--from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/",
			"--from=build /out/petstore /usr/local/bin/petstore",
			fmt.Sprintf("--from=build --chown=%d:%d /out/data /var/lib/petstore", uid, uid),
		},
	} {
		if got := args(image, name); !slices.Equal(got, want) {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got := args(image, "HEALTHCHECK"); len(got) != 1 || !strings.HasSuffix(got[0], `CMD ["/usr/local/bin/petstore", "health"]`) {
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
	needs := "go" + goDirective(t)
	var has string
	for _, arg := range args(stages[0], "ARG") {
		if v, ok := strings.CutPrefix(arg, "GO_VERSION="); ok {
			has = "go" + v
		}
	}
	if !version.IsValid(has) || version.Compare(has, needs) < 0 {
		t.Errorf("the image is built with %q, and go.mod needs %s", has, needs)
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

func goDirective(t *testing.T) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(read(t, "../go.mod"))
	if m == nil {
		t.Fatal("reference/go.mod has no go directive")
	}
	return m[1]
}

// .dockerignore keeps nothing back that the build needs.
func TestTheBuildContext(t *testing.T) {
	f, err := os.Open(root + "/.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	patterns, err := ignorefile.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	ignored, err := patternmatcher.New(patterns)
	if err != nil {
		t.Fatal(err)
	}
	files := buildFiles(t)
	if len(files) < 200 {
		t.Errorf("the server is built from %d files, want all of them", len(files))
	}
	for _, file := range files {
		if match, err := ignored.MatchesOrParentMatches(file); err != nil || match {
			t.Errorf("%s: ignored %t, %v; the build needs it", file, match, err)
		}
	}
}

// buildFiles returns the files of the repository that the server is built from.
func buildFiles(t *testing.T) (files []string) {
	t.Helper()
	cmd := exec.Command("go", "list", "-C", "..", "-deps", "-json=Dir,GoFiles,EmbedFiles,Module", ".")
	// In the workspace: the module cache may have no other versions, and no network either.
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	add := func(dir string, names ...string) {
		if rel, err := filepath.Rel(top, dir); err == nil && !strings.HasPrefix(rel, "..") {
			for _, name := range names {
				files = append(files, filepath.ToSlash(filepath.Join(rel, name)))
			}
		}
	}
	for d := json.NewDecoder(out); ; {
		var p struct {
			Dir                 string
			GoFiles, EmbedFiles []string
			Module              *struct{ Dir, GoMod string }
		}
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		add(p.Dir, p.GoFiles...)
		add(p.Dir, p.EmbedFiles...)
		if p.Module != nil {
			add(p.Module.Dir, "go.mod")
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return append(files, "reference/go.sum")
}
