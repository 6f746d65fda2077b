// Package readme tests that the README of an example shows what its commands print:
//
//	func TestReadme(t *testing.T) { readme.Server(t, newHandler) }
//
// A command is an indented line that begins with "$ ", and the indented lines after it
// are its output. "…" stands for any text within a line. Commands run in the bubble of
// testing/synctest, so that sleep takes no time, and the clock begins at [Start].
package readme

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Start is the time at which the first command runs.
var Start = time.Date(2026, time.December, 1, 12, 0, 30, 0, time.UTC)

// Server runs the commands of README.md against a service: curl, sleep, and loops of
// them. The commands may use variables, such as "KEY=demo_17".
func Server(t *testing.T, newHandler func() (http.Handler, error), vars ...string) {
	t.Helper()
	commands := read(t)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(Start))
		h, err := newHandler()
		if err != nil {
			t.Fatal(err)
		}
		shell := newShell(h, vars)
		defer shell.close()
		ran := 0
		for _, c := range commands {
			if strings.HasPrefix(c.line, "go run ") {
				continue
			}
			ran++
			if got := shell.run(t, c.line); !c.shows(got) {
				t.Errorf("%s prints\n%s\nREADME.md shows\n%s", c.line, got, c.output)
			}
		}
		if ran == 0 {
			t.Error("README.md shows no command for the service")
		}
	})
}

// Program checks that the output after the line "$ go run …" in README.md is what run
// writes.
func Program(t *testing.T, run func(out io.Writer) error) {
	t.Helper()
	commands := read(t)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(Start))
		var out bytes.Buffer
		if err := run(&out); err != nil {
			t.Fatal(err)
		}
		if len(commands) != 1 || !strings.HasPrefix(commands[0].line, "go run ") {
			t.Fatalf("README.md shows the commands %v, want go run alone", commands)
		}
		if c := commands[0]; !c.shows(out.String()) {
			t.Errorf("%s prints\n%s\nREADME.md shows\n%s", c.line, &out, c.output)
		}
	})
}

// command is a command of a README, without "$ ", and the output shown below it.
type command struct{ line, output string }

func read(t *testing.T) (all []command) {
	t.Helper()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	inOutput := false
	lines := strings.Split(string(page), "\n")
	for i, line := range lines {
		text, indented := strings.CutPrefix(line, "    ")
		switch {
		case strings.HasPrefix(text, "$ ") && indented:
			all = append(all, command{line: text[2:]})
			inOutput = true
		case inOutput && indented:
			all[len(all)-1].output += text + "\n"
		case inOutput && line == "" && i+1 < len(lines) && isOutput(lines[i+1]): // between header and body
			all[len(all)-1].output += "\n"
		default:
			inOutput = false
		}
	}
	return all
}

func isOutput(line string) bool {
	return strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "    $ ")
}

// shows reports whether output is what the README shows.
func (c command) shows(output string) bool {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(c.output), "…", ".*")
	return regexp.MustCompile("^" + pattern + "$").MatchString(output)
}
