// Command release prepares a release of all modules of the repository, each with
// the same version. Run it at the root of a clean checkout:
//
//	go run ./internal/release v0.1.0
//
// It sets the version in the requirements between the modules, commits that, tags
// the commit once for each released module, and prints the command that pushes
// commit and tags. It pushes nothing itself. If a step fails, the checkout is as
// it was before. RELEASE.md describes what comes before and after.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./internal/release v0.x.y")
		os.Exit(2)
	}
	tags, branch, err := release(".", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
	fmt.Printf("Nothing is pushed yet. To publish %s:\n\n\tgit push --atomic origin %s", os.Args[1], branch)
	for _, tag := range tags {
		fmt.Printf(" \\\n\t\t%s", tag)
	}
	fmt.Println()
}

// release commits and tags a version in the repository at root. It returns the
// tags, and the branch that the commit is on.
func release(root, version string) (tags []string, branch string, err error) {
	// A module of version 2 or later has the major version in its path.
	if !regexp.MustCompile(`^v[01]\.(0|[1-9]\d*)\.(0|[1-9]\d*)$`).MatchString(version) {
		return nil, "", fmt.Errorf("the version must be v0.x.y or v1.x.y, got %q", version)
	}
	all, err := modules(root)
	if err != nil {
		return nil, "", err
	}
	for _, m := range all {
		if m.released() {
			tags = append(tags, m.tag(version))
		}
	}
	if branch, err = check(root, version, tags); err != nil {
		return nil, "", err
	}
	before, err := run(root, "git", "rev-parse", "HEAD")
	if err != nil {
		return nil, "", err
	}
	if err = record(root, version, all, tags); err != nil {
		_, undone := run(root, "git", "reset", "--quiet", "--hard", before)
		return nil, "", errors.Join(err, undone)
	}
	return tags, branch, nil
}

// check reports what stands against a release, and the current branch.
func check(root, version string, tags []string) (branch string, err error) {
	if branch, err = run(root, "git", "branch", "--show-current"); err != nil {
		return "", err
	}
	if branch == "" {
		return "", errors.New("the checkout is on no branch; git switch to the one to release")
	}
	changes, err := run(root, "git", "status", "--porcelain")
	if err != nil {
		return "", err
	}
	if changes != "" {
		return "", fmt.Errorf("the working tree has changes; commit or remove them:\n%s", changes)
	}
	heading := fmt.Sprintf("## %s - ", strings.TrimPrefix(version, "v"))
	changelog, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(heading) + `\d{4}-\d{2}-\d{2}$`).Match(changelog) {
		return "", fmt.Errorf("CHANGELOG.md has no section %q with a date (YYYY-MM-DD); rename Unreleased", heading)
	}
	for _, tag := range tags {
		existing, err := run(root, "git", "tag", "--list", tag)
		if err != nil {
			return "", err
		}
		if existing != "" {
			return "", fmt.Errorf("tag %s exists; choose a new version, since module proxies keep the old one", tag)
		}
	}
	return branch, nil
}

// record sets the requirements between the modules, commits that, and tags the
// commit. If it fails, it leaves no tag.
func record(root, version string, all []module, tags []string) error {
	for _, m := range all {
		if len(m.requires) == 0 {
			continue
		}
		args := []string{"mod", "edit"}
		for _, r := range m.requires {
			args = append(args, "-require="+r+"@"+version)
		}
		if _, err := run(filepath.Join(root, filepath.FromSlash(m.dir)), "go", args...); err != nil {
			return err
		}
	}
	if _, err := run(root, "git", "commit", "--quiet", "--all", "--message", "Release "+version); err != nil {
		return err
	}
	for i, tag := range tags {
		if _, err := run(root, "git", "tag", "--annotate", "--message", "Release "+version, tag); err != nil {
			for _, made := range tags[:i] {
				_, undone := run(root, "git", "tag", "--delete", made)
				err = errors.Join(err, undone)
			}
			return err
		}
	}
	return nil
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
