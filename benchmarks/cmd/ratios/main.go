// Ratios turns the output of the benchmarks beside it into Markdown tables:
// medians, and how many times as long each peer takes.
//
//	go run ./cmd/ratios                                        measure, and print the tables
//	go run ./cmd/ratios -long -write ../docs/BENCHMARKS.md     measure more, and renew the document
//
// It is run in the folder of the benchmarks. It measures in rounds, each of which
// runs every benchmark once, so that whatever else the machine does in the
// meantime meets all peers alike. On a machine that others use as well,
//
//	go run ./cmd/ratios -exec 'chrt -f 10'
//
// gives the benchmarks precedence over their processes (as root, on Linux).
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"

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
	flag.BoolVar(&m.long, "long", false, "ten million subjects and the flood of fifty million as well, in three rounds")
	write := flag.String("write", "", "a document in which the tables are renewed")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unknown argument %q", flag.Arg(0))
	}
	if *write != "" { // before minutes of measuring
		if err := document.Check(*write, docPart); err != nil {
			return err
		}
	}
	out, err := m.measure()
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
