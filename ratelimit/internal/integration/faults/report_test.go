//go:build unix

package faults_test

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
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
	fmt.Fprintf(&b, "Of %s on %s, %d processors, %s, %s/%s. redis-server %s.\n",
		time.Now().UTC().Format(time.DateOnly), processor(), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, rep.redis)
	for _, s := range rep.sections {
		s.write(&b)
	}
	return b.String()
}

func (s *section) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n### %s%s\n\n%s", strings.ToUpper(s.scenario.name[:1]), s.scenario.name[1:], s.scenario.text)
	if s.scenario.loss != "" {
		b.WriteString(" " + s.scenario.loss)
	}
	b.WriteString("\n\n| | promised | over a limit | not counted | counted too much |\n|---|---|---:|---:|---:|\n")
	for _, r := range s.rows {
		o := &r.outcome
		fmt.Fprintf(b, "| %s | %s | %d | %d | %d |\n", r.arrangement.name, s.promised(&r.arrangement), o.over(), o.missing(), o.excess())
	}
	b.WriteString("\n| | | sent | admitted | denied | failed | median, ms | p99, ms | worst, ms |\n|---|---|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, r := range s.rows {
		for phase, name := range phaseNames {
			t := &r.outcome.phases[phase]
			fmt.Fprintf(b, "| %s | %s | %d | %d | %d | %d | %s | %s | %s |\n", r.arrangement.name, name,
				t.sent(), t.admitted, t.denied, t.failed, millis(t.percentile(50)), millis(t.percentile(99)), millis(t.percentile(100)))
		}
	}
}

func (s *section) promised(a *arrangement) string {
	var texts []string
	for _, p := range slices.Concat(a.promises, s.scenario.promises) {
		texts = append(texts, p.text)
	}
	text := strings.Join(texts, "; ")
	if s.scenario.loss != "" {
		text += "; except for usage that Redis lost"
	}
	return text
}

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
