package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRelease(t *testing.T) {
	repo := small(t)
	tags, branch, err := release(repo, version)
	must(t, err)
	if branch != "main" {
		t.Errorf("the branch is %q, want main", branch)
	}
	slices.Sort(tags)
	if diff := cmp.Diff(tags, strings.Fields(mustRun(t, repo, "git", "tag", "--points-at", "HEAD"))); diff != "" {
		t.Errorf("the commit has other tags than release returned (-returned +made):\n%s", diff)
	}
	if changes := mustRun(t, repo, "git", "status", "--porcelain"); changes != "" {
		t.Errorf("after a release the working tree has changes:\n%s", changes)
	}
	all, err := modules(repo)
	must(t, err)
	for _, m := range all {
		content, err := os.ReadFile(filepath.Join(repo, m.dir, "go.mod"))
		must(t, err)
		for _, r := range m.requires {
			if !strings.Contains(string(content), r+" "+version+"\n") {
				t.Errorf("%s does not require %s %s", m.path, r, version)
			}
		}
	}
	if _, _, err := release(repo, version); err == nil || !strings.Contains(err.Error(), "v0.99.0 exists") {
		t.Errorf("the same version again: %v, want an error that names the tag", err)
	}
}

// If release returns an error, the repository is as it was before.
func TestRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		version string
		change  func(t *testing.T, repo string)
		want    string
	}{
		"no version":           {"0.99.0", nil, `the version must be v0.x.y or v1.x.y, got "0.99.0"`},
		"major version 2":      {"v2.0.0", nil, "the version must be v0.x.y or v1.x.y"},
		"a leading zero":       {"v0.099.0", nil, "the version must be v0.x.y or v1.x.y"},
		"not in the changelog": {"v0.98.0", nil, `CHANGELOG.md has no section "## 0.98.0 - "`},
		"a changed file": {version, func(t *testing.T, repo string) {
			write(t, filepath.Join(repo, "README.md"), []byte("other"))
		}, "the working tree has changes"},
		"a new file": {version, func(t *testing.T, repo string) {
			write(t, filepath.Join(repo, "new.go"), []byte("package gatehouse"))
		}, "the working tree has changes"},
		"no branch": {version, func(t *testing.T, repo string) {
			mustRun(t, repo, "git", "switch", "--quiet", "--detach")
		}, "the checkout is on no branch"},
		"one of the tags": {version, func(t *testing.T, repo string) {
			mustRun(t, repo, "git", "tag", "ratelimit/redislimit/"+version)
		}, "tag ratelimit/redislimit/v0.99.0 exists"},
		"a tag that git refuses": {version, func(t *testing.T, repo string) {
			mustRun(t, repo, "git", "tag", "middleware/jsonbody/"+version+"/taken")
		}, "git tag"},
		"a commit that git refuses": {version, func(t *testing.T, repo string) {
			hook := filepath.Join(repo, ".git", "hooks", "pre-commit")
			write(t, hook, []byte("#!/bin/sh\nexit 1\n"))
			must(t, os.Chmod(hook, 0o777))
		}, "git commit"},
		"a requirement that is not released": {version, func(t *testing.T, repo string) {
			mustRun(t, repo, "go", "mod", "edit", "-require=github.com/animalstore/gatehouse/reference@v0.0.0")
			commit(t, repo)
		}, "github.com/animalstore/gatehouse is released and requires github.com/animalstore/gatehouse/reference"},
	} {
		t.Run(name, func(t *testing.T) {
			repo := small(t)
			if test.change != nil {
				test.change(t, repo)
			}
			state := func() string {
				return mustRun(t, repo, "git", "for-each-ref") + mustRun(t, repo, "git", "status", "--porcelain")
			}
			before := state()
			if _, _, err := release(repo, test.version); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want one with %q", err, test.want)
			}
			if after := state(); after != before {
				t.Errorf("the repository is\n%s\nwant it as it was\n%s", after, before)
			}
		})
	}
}
