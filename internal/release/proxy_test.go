package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"path/filepath"
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
		tree := m.tag(version) + ":" + strings.TrimPrefix(m.dir, ".")
		at := filepath.Join(dir, filepath.FromSlash(m.path), "@v", version)
		write(t, at+".info", fmt.Appendf(nil, `{"Version": %q, "Time": "2026-01-31T00:00:00Z"}`, version))
		write(t, at+".mod", []byte(mustRun(t, repo, "git", "cat-file", "blob", tree+slashed(m.dir)+"go.mod")+"\n"))
		write(t, at+".zip", moduleZip(t, repo, tree, m.path+"@"+version+"/"))
		write(t, filepath.Join(filepath.Dir(at), "list"), []byte(version+"\n"))
	}
	return dir
}

// slashed returns what separates a tree's directory from a name below it.
func slashed(dir string) string {
	if dir == "." {
		return ""
	}
	return "/"
}

// moduleZip returns the archive of a module: the files of the tree, without those
// of modules below it.
func moduleZip(t *testing.T, repo, tree, prefix string) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "tree.zip")
	mustRun(t, repo, "git", "archive", "--format=zip", "--prefix="+prefix, "--output="+name, tree)
	in, err := zip.OpenReader(name)
	if err != nil {
		t.Fatal(err)
	}
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
		if f.FileInfo().IsDir() || hasPrefixOf(f.Name, below) {
			continue
		}
		if err := out.Copy(f); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := in.Open(prefix + "LICENSE"); err != nil { // the go command adds the root's
		w, err := out.Create(prefix + "LICENSE")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(mustRun(t, repo, "git", "cat-file", "blob", version+":LICENSE"))); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func hasPrefixOf(name string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}
