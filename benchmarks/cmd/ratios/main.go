// Ratios turns the output of the benchmarks beside it into Markdown tables:
// medians, how many times as long each peer takes, and what was aimed at.
//
//	go run ./cmd/ratios                                  measure, and print the tables
//	go run ./cmd/ratios -write ../docs/BENCHMARKS.md     measure, and renew the document
//	go run ./cmd/ratios old.txt new.txt                  tables of what was measured before
//
// It is run in the folder of the benchmarks. It measures in rounds, each of which
// runs every benchmark once, so that whatever else the machine does in the
// meantime meets all peers alike. On a machine that others use as well,
//
//	go run ./cmd/ratios -exec 'chrt -f 10'
//
// gives the benchmarks precedence over their processes (as root, on Linux). What
// the benchmarks print is kept in the file that -raw names, for benchstat.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/animalstore/gatehouse/benchmarks/internal/document"
)

// docPart is the name of the tables in a document.
const docPart = "ratios"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "ratios:", err)
		os.Exit(1)
	}
}

func run() error {
	var m measurement
	flag.IntVar(&m.rounds, "rounds", 6, "how often everything is measured")
	flag.StringVar(&m.benchtime, "benchtime", "300ms", "how long a benchmark runs in each round")
	flag.StringVar(&m.exec, "exec", "", "a command that runs the benchmarks, such as 'chrt -f 10'")
	flag.StringVar(&m.raw, "raw", "", "a file for what the benchmarks print")
	flag.BoolVar(&m.long, "long", false, "ten million subjects and the flood of fifty million as well, in three rounds")
	write := flag.String("write", "", "a document in which the tables are renewed")
	flag.Parse()

	if *write != "" { // before minutes of measuring
		if err := document.Check(*write, docPart); err != nil {
			return err
		}
	}
	out, err := output(&m, flag.Args())
	if err != nil {
		return err
	}
	s, err := parse(bytes.NewReader(out))
	if err != nil {
		return err
	}
	tables := s.tables()
	if *write != "" {
		return document.Renew(*write, docPart, tables)
	}
	_, err = os.Stdout.WriteString(tables)
	return err
}

// output returns what benchmarks printed: those of the files, or new ones.
func output(m *measurement, files []string) ([]byte, error) {
	if len(files) == 0 {
		return m.measure()
	}
	var all []byte
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		all = append(append(all, b...), '\n')
	}
	return all, nil
}

// writeLong writes what is only measured on request.
func (s *samples) writeLong(b *strings.Builder) {
	say := func(name string, cpus int, unit string) string {
		median, _ := s.median(name, cpus, unit)
		least, _ := s.least(name, cpus, unit)
		return fmt.Sprintf("%s (%s)", number(median), number(least))
	}
	const turnover = "Turnover/keys=10M/peer="
	if _, ok := s.median(turnover+ours, 2, "fill-longest-ms"); ok {
		b.WriteString("\nWith ten million subjects, milliseconds of the longest call, and how many of ten million calls took over 1 ms: the median of the rounds, and in brackets the lowest round. The row (nothing) has a call that only waits, as often and for as long: it shows the delays of the machine itself.\n\n| | longest call, filling | over 1 ms | longest call, expiring | over 1 ms |\n|---|---:|---:|---:|---:|\n")
		for _, peer := range []string{ours, "none"} {
			b.WriteString("| " + label[peer] + " |")
			for _, unit := range []string{"fill-longest-ms", "fill-over-1ms", "expire-longest-ms", "expire-over-1ms"} {
				b.WriteString(" " + say(turnover+peer, 2, unit) + " |")
			}
			b.WriteString("\n")
		}
	}
	flood := func(unit string) float64 { v, _ := s.median("Flood", 1, unit); return v }
	if ns, ok := s.median("Flood", 1, "ns/op"); ok {
		fmt.Fprintf(b, "\nA flood of 50 million fresh subjects through a table of one million: %s ns each, %s evicted, %s refused, the longest call %s ms. No subject that was banned, limited, or had used half of a quota was forgotten.\n",
			number(ns), number(flood("evicted")), number(flood("refused")), say("Flood", 1, "flood-longest-ms"))
	}
}
