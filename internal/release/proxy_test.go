package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

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
		_, err = w.Write([]byte(mustRun(t, repo, "git", "cat-file", "blob", version+":LICENSE")))
		must(t, err)
	}
	must(t, out.Close())
	return b.Bytes()
}
