//go:build unix

package faults

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// A report is the outcome of every run, for the document.
type report struct {
	sections []section
	redis    string // the server's version
}

type section struct {
	scenario scenario
	rows     []row
}

type row struct {
	arrangement arrangement
	outcome     outcome
}

// complete reports whether every scenario met every arrangement.
func (rep *report) complete() bool {
	n := 0
	for _, s := range rep.sections {
		n += len(s.rows)
	}
	return n == len(scenarios)*len(arrangements)
}

// The tables stand between these lines of a document.
const (
	beginTables = "<!-- faults: begin -->\n"
	endTables   = "<!-- faults: end -->\n"
)

// renew puts the tables into a document, in place of those it has.
func (rep *report) renew(file string) error {
	if !rep.complete() {
		return fmt.Errorf("%s is not renewed: not every fault met every arrangement", file)
	}
	doc, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(doc, []byte(beginTables))
	_, after, ok2 := bytes.Cut(rest, []byte(endTables))
	if !ok || !ok2 {
		return fmt.Errorf("%s has no lines %q and %q", file, beginTables, endTables)
	}
	var b bytes.Buffer
	b.Write(before)
	b.WriteString(beginTables + "\n" + rep.tables() + "\n" + endTables)
	b.Write(after)
	return os.WriteFile(file, b.Bytes(), 0o644)
}

func (rep *report) tables() string {
	var b strings.Builder
	commit, _ := exec.Command("git", "rev-parse", "--short=8", "HEAD").Output()
	fmt.Fprintf(&b, "Of %s, commit %s, on %s, %d processors, %s, %s/%s. redis-server %s.\n",
		time.Now().UTC().Format(time.DateOnly), strings.TrimSpace(string(commit)), processor(), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, rep.redis)
	b.WriteString("\n| fault | arrangement | over a limit | not counted | counted too much | sent during the fault | failed | median, ms | p99, ms | worst, ms |\n")
	b.WriteString("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, s := range rep.sections {
		for _, r := range s.rows {
			o, t := &r.outcome, &r.outcome.phases[fault]
			fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %d | %d | %s | %s | %s |\n", s.scenario.title(), r.arrangement.name, o.over(), o.missing(), o.excess(),
				t.sent(), t.failed, millis(t.percentile(50)), millis(t.percentile(99)), millis(t.percentile(100)))
		}
	}
	b.WriteString("\n")
	for _, s := range rep.sections {
		fmt.Fprintf(&b, "- **%s.** %s", s.scenario.title(), s.scenario.text)
		if s.scenario.loss != "" {
			b.WriteString(" " + s.scenario.loss)
		}
		for _, p := range s.scenario.promises {
			b.WriteString(" Promised as well: " + p.text + ".")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// title returns the name of the scenario as the beginning of a sentence.
func (s *scenario) title() string { return strings.ToUpper(s.name[:1]) + s.name[1:] }

// millis writes milliseconds, with more digits the fewer they are.
func millis(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms >= 9.95:
		return fmt.Sprintf("%.0f", ms)
	case ms >= 0.095:
		return fmt.Sprintf("%.1f", ms)
	}
	return fmt.Sprintf("%.4f", ms)
}

// processor returns what the kernel calls the processor, if it says so.
func processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimLeft(strings.TrimSpace(name), ": ")
		}
	}
	return "an unnamed processor"
}
