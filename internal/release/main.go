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
	"fmt"
	"os"
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
