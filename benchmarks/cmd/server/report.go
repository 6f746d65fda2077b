package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/benchmarks/internal/document"
)

// A table is one of the report.
type table struct {
	title   string
	text    string // before the table
	columns []string
	rows    [][]string
}

// report returns the tables as Markdown.
func (b *bench) report() string {
	var s strings.Builder
	size := "The short form, with fewer and shorter rounds and less data."
	if b.long {
		size = "The long form."
	}
	fmt.Fprintf(&s, "Measured on %s, %s, with %s on %s, %d processors. %s\n",
		time.Now().UTC().Format(time.DateOnly), document.Commit(), runtime.Version(), processor(), runtime.NumCPU(), size)
	for _, t := range b.tables {
		fmt.Fprintf(&s, "\n### %s\n\n%s\n\n", t.title, t.text)
		fmt.Fprintf(&s, "| %s |\n|---|%s\n", strings.Join(t.columns, " | "), strings.Repeat("---:|", len(t.columns)-1))
		for _, row := range t.rows {
			fmt.Fprintf(&s, "| %s |\n", strings.Join(row, " | "))
		}
	}
	return s.String()
}

// processor returns the model of the processor.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				return strings.TrimSpace(value)
			}
		}
	}
	return runtime.GOARCH
}

// median returns the median of values, or the mean of the two in the middle.
func median[T int64 | float64 | time.Duration](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

func millis(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d)/float64(time.Millisecond)) }

func micros(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/float64(time.Microsecond)) }

func mebibytes(n int64) string { return fmt.Sprintf("%.0f", float64(n)/(1<<20)) }
