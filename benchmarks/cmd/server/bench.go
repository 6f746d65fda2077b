package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// options are what the command line says.
type options struct {
	long, quick bool
	duration    time.Duration
	only        string
}

// A section is a part of the document.
type section struct {
	name    string
	measure func(*bench) error
}

var sections = []section{
	{"requests", measureRequests},
	{"shared", measureShared},
	{"latency", measureLatency},
	{"durable", measureDurable},
	{"connections", measureConnections},
	{"memory", measureMemory},
}

func sectionNames() string {
	var names []string
	for _, s := range sections {
		names = append(names, s.name)
	}
	return strings.Join(names, ", ")
}

// sections returns the sections to measure.
func (o options) sections() ([]section, error) {
	if o.only == "" {
		return sections, nil
	}
	var chosen []section
	for name := range strings.SplitSeq(o.only, ",") {
		i := slices.IndexFunc(sections, func(s section) bool { return s.name == strings.TrimSpace(name) })
		if i < 0 {
			return nil, fmt.Errorf("-only: there is no section %q, only %s", name, sectionNames())
		}
		chosen = append(chosen, sections[i])
	}
	return chosen, nil
}

// A bench is one run of the command.
type bench struct {
	options
	ctx    context.Context
	dir    string // of the servers' files
	binary string // of petstore
	rounds int

	running []*process  // of the section that is measured
	closers []io.Closer // also of that section
	tables  []table
}

// newBench builds petstore.
func newBench(ctx context.Context, o options) (_ *bench, err error) {
	if _, err := exec.LookPath("wrk"); err != nil {
		return nil, fmt.Errorf("wrk must be on this machine; install it (apt-get install wrk, brew install wrk), or build it from its source: %w", err)
	}
	b := &bench{options: o, ctx: ctx, rounds: 5}
	if b.duration == 0 {
		b.duration = 3 * time.Second
		if o.long {
			b.duration = 5 * time.Second
		}
	}
	if o.long {
		b.rounds = 7
	}
	if o.quick {
		b.duration, b.rounds = 300*time.Millisecond, 1
	}
	if b.dir, err = os.MkdirTemp("", "server-bench"); err != nil {
		return nil, err
	}
	b.binary = filepath.Join(b.dir, "petstore")
	if _, err := b.command("..", "go", "build", "-buildvcs=false", "-o", b.binary, "./reference"); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

// command runs a program in a directory to its end, and returns what it prints.
func (b *bench) command(dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(b.ctx, args[0], args[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	endWithParent(cmd)
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", strings.Join(args, " "), err, &stdout, &stderr)
	}
	return stdout.String(), nil
}

// testBinary builds the tests and benchmarks of a package of the server.
func (b *bench) testBinary(folder string) (string, error) {
	binary := filepath.Join(b.dir, filepath.Base(folder)+".test")
	_, err := b.command(filepath.Join("..", "reference"), "go", "test", "-c", "-o", binary, folder)
	return binary, err
}

// start is start for a process that ends with the section.
func (b *bench) start(name, dir string, stdin *os.File, stdout io.Writer, args ...string) (*process, error) {
	p, err := start(b.ctx, name, dir, stdin, stdout, args...)
	if err == nil {
		b.running = append(b.running, p)
	}
	return p, err
}

// end ends what the section has left running, the last first.
func (b *bench) end() {
	for _, p := range slices.Backward(b.running) {
		p.stop() //nolint:errcheck // its results are in, or there is an earlier error
	}
	for _, c := range b.closers {
		c.Close()
	}
	b.running, b.closers = nil, nil
}

// close ends everything and removes the files.
func (b *bench) close() {
	b.end()
	os.RemoveAll(b.dir)
}

// size returns a number of rows for the mode of this run.
func (b *bench) size(long, short, quick int) int {
	switch {
	case b.quick:
		return quick
	case b.long:
		return long
	default:
		return short
	}
}
