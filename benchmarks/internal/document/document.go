// Package document renews the parts of a document that a program writes. Such a part
// stands between two lines, here of the name "ratios":
//
//	<!-- ratios: begin -->
//	<!-- ratios: end -->
//
// A program checks the document before it works for minutes, and renews it in the end:
//
//	if err := document.Check(file, "ratios"); err != nil {
//		...
//	err := document.Renew(file, "ratios", tables())
package document

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Check returns an error if a file does not have a part with this name.
func Check(file, name string) error {
	_, _, err := around(file, name)
	return err
}

// Renew puts text into the part of a file with this name, in place of what it has.
func Renew(file, name, text string) error {
	before, after, err := around(file, name)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.Write(before)
	b.WriteString(begin(name) + "\n" + text + "\n" + end(name))
	b.Write(after)
	return os.WriteFile(file, b.Bytes(), 0o644)
}

// Commit names what is measured: the commit that is checked out.
func Commit() string {
	out, err := exec.Command("git", "rev-parse", "--short=8", "HEAD").Output()
	if err != nil {
		return "an unknown commit"
	}
	return "commit " + strings.TrimSpace(string(out))
}

func begin(name string) string { return "<!-- " + name + ": begin -->\n" }
func end(name string) string   { return "<!-- " + name + ": end -->\n" }

// around returns what stands before and after a part.
func around(file, name string) (before, after []byte, err error) {
	doc, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	before, rest, ok := bytes.Cut(doc, []byte(begin(name)))
	_, after, ok2 := bytes.Cut(rest, []byte(end(name)))
	if !ok || !ok2 {
		return nil, nil, fmt.Errorf("%s has no lines %q and %q", file, begin(name), end(name))
	}
	return before, after, nil
}
