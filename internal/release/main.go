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
	"path"
	"path/filepath"
	"regexp"
	"slices"
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
	fmt.Printf("Nothing is pushed yet. To publish %s:\n\n\tgit push --atomic origin %s \\\n\t\t%s\n",
		os.Args[1], branch, strings.Join(tags, " \\\n\t\t"))
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
		_, _ = run(root, "git", append([]string{"tag", "--delete"}, tags...)...) // those that were made
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
	existing, err := run(root, "git", append([]string{"tag", "--list"}, tags...)...)
	if err != nil {
		return "", err
	}
	if tag, _, _ := strings.Cut(existing, "\n"); tag != "" {
		return "", fmt.Errorf("tag %s exists; choose a new version, since module proxies keep the old one", tag)
	}
	return branch, nil
}

// record sets the requirements between the modules, commits that, and tags the commit.
func record(root, version string, all []module, tags []string) error {
	for _, m := range all {
		if len(m.requires) == 0 {
			continue
		}
		args := []string{"mod", "edit"}
		for _, r := range m.requires {
			args = append(args, "-require="+r+"@"+version)
		}
		if _, err := run(filepath.Join(root, m.dir), "go", args...); err != nil {
			return err
		}
	}
	if _, err := run(root, "git", "commit", "--quiet", "--all", "--message", "Release "+version); err != nil {
		return err
	}
	for _, tag := range tags {
		if _, err := run(root, "git", "tag", "--annotate", "--message", "Release "+version, tag); err != nil {
			return err
		}
	}
	return nil
}

// unreleased lists the modules that only a checkout uses.
var unreleased = []string{"benchmarks", "examples", "reference"}

// A module is one that go.work names.
type module struct {
	dir      string // from the root of the repository, with slashes
	path     string
	requires []string // the paths of other modules of the repository
}

func (m module) released() bool { return !slices.Contains(unreleased, m.dir) }

// tag returns the tag of a version of the module.
func (m module) tag(version string) string { return path.Join(m.dir, version) }

// modules returns the modules of the workspace, and an error if one that is
// released requires one that is not.
func modules(root string) ([]module, error) {
	list, err := run(root, "go", "list", "-m", "-f", "{{.Path}} {{.Dir}}")
	if err != nil {
		return nil, err
	}
	var all []module
	for line := range strings.SplitSeq(list, "\n") {
		own, dir, _ := strings.Cut(line, " ")
		gomod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil {
			return nil, err
		}
		m := module{dir: ".", path: own}
		if below, ok := strings.CutPrefix(own, rootPath+"/"); ok {
			m.dir = below
		}
		for _, found := range requirement.FindAllSubmatch(gomod, -1) {
			m.requires = append(m.requires, string(found[1]))
		}
		all = append(all, m)
	}
	for _, m := range all {
		for _, other := range all {
			if m.released() && !other.released() && slices.Contains(m.requires, other.path) {
				return nil, fmt.Errorf("%s is released and requires %s, which is not", m.path, other.path)
			}
		}
	}
	return all, nil
}

// rootPath is the path of the module at the root. Those of the others continue with their
// directories.
const rootPath = "github.com/animalstore/gatehouse"

// requirement finds the modules of the repository that a go.mod requires.
var requirement = regexp.MustCompile(`(?m)^\s*(?:require )?(` + rootPath + `\S*) v\S+`)

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
