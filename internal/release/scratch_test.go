package main

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
)

const version = "v0.99.0"

// small returns a repository of a few modules without packages.
func small(t *testing.T) string {
	t.Helper()
	needGit(t)
	isolate(t)
	dir := t.TempDir()
	const mod = "module github.com/animalstore/gatehouse%s\n\ngo 1.26.0\n"
	write(t, filepath.Join(dir, "go.work"), []byte("go 1.26.0\n\nuse (\n\t.\n\t./middleware/jsonbody\n\t./ratelimit/redislimit\n\t./reference\n)\n"))
	write(t, filepath.Join(dir, "go.mod"), fmt.Appendf(nil, mod, ""))
	for _, name := range []string{"middleware/jsonbody", "ratelimit/redislimit", "reference"} {
		file := filepath.Join(dir, filepath.FromSlash(name), "go.mod")
		write(t, file, fmt.Appendf(nil, mod+"\nrequire github.com/animalstore/gatehouse v0.0.0\n", "/"+name))
	}
	write(t, filepath.Join(dir, "CHANGELOG.md"), []byte("## 0.99.0 - 2026-01-31\n"))
	mustRun(t, dir, "git", "init", "--quiet", "--initial-branch", "main")
	commit(t, dir)
	return dir
}

func needGit(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("skipped: git is not on this machine")
	}
}

// scratch returns a repository with the files of this checkout, as they are now,
// in one commit, and a section for the version in its changelog.
func scratch(t *testing.T) string {
	t.Helper()
	needGit(t)
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
	changelog := filepath.Join(dir, "CHANGELOG.md")
	content, err := os.ReadFile(changelog)
	must(t, err)
	write(t, changelog, append(content, "\n## 0.99.0 - 2026-01-31\n"...))
	mustRun(t, dir, "git", "init", "--quiet", "--initial-branch", "main")
	commit(t, dir)
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

func commit(t *testing.T, dir string) {
	t.Helper()
	mustRun(t, dir, "git", "add", "--all")
	mustRun(t, dir, "git", "commit", "--quiet", "--message", "test")
}

func mustRun(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	out, err := run(dir, name, args...)
	must(t, err)
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
		if !m.released() {
			continue
		}
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
