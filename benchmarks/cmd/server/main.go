// Server measures the pets server of reference/ against a bare net/http server that
// answers with the same bytes, and writes what it measures as Markdown tables.
//
//	go run ./cmd/server                     print the tables
//	go run ./cmd/server -only requests      print those of one section
//	go run ./cmd/server -long -write ../reference/docs/SERVER_BENCHMARKS.md
//	                                        everything, and renew the document (40 minutes)
//	go run ./cmd/server -quick              check that all of it works (measures nothing)
//
// It is run in the folder of the benchmarks, on Linux 5.11 or newer, and needs wrk. One
// section also needs PostgreSQL and redis-server; without them only -long fails. It builds
// petstore, and starts all servers on free ports of the loopback interface with data of its
// own in a temporary directory. It ends what it has started, even when it is killed, but
// then leaves that directory.
//
// Each server shares the processors with the program that loads it. Use a machine that
// does nothing else: other work changes the numbers, and to a lesser degree the ratios.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/animalstore/gatehouse/benchmarks/internal/document"
)

// docPart is the name of the tables in a document.
const docPart = "server"

func main() {
	// The kernel kills the children of a thread when it ends: see start.
	runtime.LockOSThread()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) == 2 && os.Args[1] == bareCommand {
		return serveBare()
	}
	var o options
	flag.BoolVar(&o.long, "long", false, "a million subjects, and more rounds")
	flag.BoolVar(&o.quick, "quick", false, "only check that everything is answered as it should be")
	flag.DurationVar(&o.duration, "duration", 0, "how long each measurement takes, in whole seconds (default 3s, with -long 5s)")
	flag.StringVar(&o.only, "only", "", "the sections to measure, separated by commas: "+sectionNames())
	write := flag.String("write", "", "a document in which the tables are renewed; needs -long")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unknown argument %q", flag.Arg(0))
	}
	todo, err := o.sections()
	if err != nil {
		return err
	}
	if *write != "" { // before minutes of measuring
		if !o.long || o.quick || o.only != "" {
			return errors.New("-write needs a whole run: -long, without -quick and -only")
		}
		if err := document.Check(*write, docPart); err != nil {
			return err
		}
	}
	if runtime.GOOS != "linux" {
		return errors.New("processor time and memory are read as Linux shows them; run this on Linux")
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	b, err := newBench(ctx, o)
	if err != nil {
		return err
	}
	defer b.close()
	for _, s := range todo {
		fmt.Fprintf(os.Stderr, "%s %s\n", time.Now().Format(time.TimeOnly), s.name)
		if err := s.measure(b); err != nil {
			return errors.Join(ctx.Err(), fmt.Errorf("%s: %w", s.name, err))
		}
		b.end()
	}
	if o.quick {
		fmt.Println("everything was answered as it should be")
		return nil
	}
	if *write != "" {
		return document.Renew(*write, docPart, b.report())
	}
	_, err = os.Stdout.WriteString(b.report())
	return err
}
