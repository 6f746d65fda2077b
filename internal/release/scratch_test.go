// Package release tests that what .ci/release makes can be installed.
package release

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/internal/testcheck"
)

const version = "v0.99.0"

// scratch returns a repository with the files of this checkout, as they are now,
// in one commit, and a section for the version in its changelog.
func scratch(t *testing.T) string {
	t.Helper()
	for _, tool := range []string{"git", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("skipped: %s is not on this machine", tool)
		}
	}
	root, err := run(".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		t.Skipf("skipped: this is not a git checkout: %v", err)
	}
	files, err := run(root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	must(t, err)
	isolate(t)
	dir := t.TempDir()
	for name := range strings.SplitSeq(strings.TrimRight(files, "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) { // and not committed yet
			continue
		}
		must(t, err)
		write(t, filepath.Join(dir, name), content)
	}
	must(t, os.Chmod(filepath.Join(dir, ".ci", "release"), 0o777))
	changelog := filepath.Join(dir, "CHANGELOG.md")
	content, err := os.ReadFile(changelog)
	must(t, err)
	write(t, changelog, append(content, "\n## 0.99.0 - 2026-01-31\n"...))
	mustRun(t, dir, "git", "init", "--quiet", "--initial-branch", "main")
	mustRun(t, dir, "git", "add", "--all")
	mustRun(t, dir, "git", "commit", "--quiet", "--message", "test")
	return dir
}

// isolate keeps the settings and the repository of the caller out of git.
func isolate(t *testing.T) {
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "GIT_") {
			t.Setenv(name, "") // restores it after the test
			os.Unsetenv(name)
		}
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_SYSTEM", os.DevNull)
	for _, role := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+role+"_NAME", "test")
		t.Setenv("GIT_"+role+"_EMAIL", "test@example.com")
	}
	t.Setenv("GOWORK", "") // the scratch repository's own
}

func mustRun(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	out := testcheck.Must(run(dir, name, args...))
	return out
}

func write(t *testing.T, name string, content []byte) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(name), 0o777))
	must(t, os.WriteFile(name, content, 0o666))
}

// proxy writes what a module proxy would have for the tags of the version, in
// the layout of https://go.dev/ref/mod#goproxy-protocol, and returns its directory.
func proxy(t *testing.T, repo string, all []module) string {
	t.Helper()
	dir := t.TempDir()
	for _, m := range all {
		at := filepath.Join(dir, filepath.FromSlash(m.path), "@v", version)
		write(t, at+".info", fmt.Appendf(nil, `{"Version": %q, "Time": "2026-01-31T00:00:00Z"}`, version))
		mod := mustRun(t, repo, "git", "cat-file", "blob", m.tag(version)+":"+path.Join(m.dir, "go.mod"))
		write(t, at+".mod", []byte(mod+"\n"))
		write(t, at+".zip", moduleZip(t, repo, m))
		write(t, filepath.Join(filepath.Dir(at), "list"), []byte(version+"\n"))
	}
	return dir
}

// moduleZip returns the archive of a module: the files of its directory, without
// those of modules below it, and the LICENSE.
func moduleZip(t *testing.T, repo string, m module) []byte {
	t.Helper()
	tree, prefix := m.tag(version)+":"+strings.TrimPrefix(m.dir, "."), m.path+"@"+version+"/"
	name := filepath.Join(t.TempDir(), "tree.zip")
	mustRun(t, repo, "git", "archive", "--format=zip", "--prefix="+prefix, "--output="+name, tree)
	in, err := zip.OpenReader(name)
	must(t, err)
	defer in.Close()
	var below []string
	for _, f := range in.File {
		if dir, is := strings.CutSuffix(f.Name, "go.mod"); is && dir != prefix {
			below = append(below, dir)
		}
	}
	var b bytes.Buffer
	out := zip.NewWriter(&b)
	for _, f := range in.File {
		isBelow := func(dir string) bool { return strings.HasPrefix(f.Name, dir) }
		if f.FileInfo().IsDir() || slices.ContainsFunc(below, isBelow) {
			continue
		}
		must(t, out.Copy(f))
	}
	if m.dir != "." { // the go command adds the root's LICENSE
		w, err := out.Create(prefix + "LICENSE")
		must(t, err)
		if _, err := w.Write([]byte(mustRun(t, repo, "git", "cat-file", "blob", version+":LICENSE"))); err != nil {
			t.Fatal(err)
		}
	}
	must(t, out.Close())
	return b.Bytes()
}

// A module is one that is released.
type module struct {
	dir  string // from the root of the repository, with slashes
	path string
}

func (m module) tag(version string) string { return path.Join(m.dir, version) }

// tagged returns the modules that have a tag of the version.
func tagged(t *testing.T, repo string) (all []module) {
	t.Helper()
	for tag := range strings.FieldsSeq(mustRun(t, repo, "git", "tag", "--points-at", "HEAD")) {
		m := module{dir: path.Dir(tag)}
		m.path = path.Join("github.com/animalstore/gatehouse", m.dir)
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b module) int { return strings.Compare(a.path, b.path) })
	return all
}

// run runs a command in dir and returns what it prints, without the last newline.
func run(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, stderr.Bytes())
	}
	return strings.TrimRight(string(out), "\n"), nil
}
