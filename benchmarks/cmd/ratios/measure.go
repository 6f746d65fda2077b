package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/benchmarks/internal/document"
)

// A measurement says how to run the benchmarks.
type measurement struct {
	rounds    int
	benchtime string
	exec      string
	long      bool
}

// A part is benchmarks that are run in the same way.
type part struct {
	bench string // a regular expression
	cpu   string // numbers of processors
	once  bool   // each benchmark does its work once
	plain bool   // without -exec, which would go for the server as well
}

// Ratios are compared at one processor, where they hold still. Sweeps have one of
// their own, so that what is seen of them is their locks; and so has Redis.
var parts = []part{
	{bench: "^Benchmark(Take|Smooth|Pairs|Middleware|Gate)$", cpu: "1"},
	{bench: "^BenchmarkFirst$", cpu: "1", once: true},
	{bench: "^BenchmarkParallel$", cpu: "2"},
	{bench: "^BenchmarkTurnover$/^keys=1M$", cpu: "2"},
	{bench: "^Benchmark(Redis|SmoothRedis|PairsRedis)$", cpu: "2", plain: true},
}

// longRounds is in how many rounds the longParts are run.
const longRounds = 3

var longParts = []part{
	{bench: "^BenchmarkTurnover$/^keys=10M$", cpu: "2", once: true},
	{bench: "^BenchmarkFlood$", cpu: "1", once: true},
}

// measure builds the benchmarks and runs them in rounds.
func (m *measurement) measure() ([]byte, error) {
	dir, err := os.MkdirTemp("", "ratios")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "benchmarks.test")
	var out bytes.Buffer
	if err := command(&out, nil, "go", "test", "-c", "-o", binary, "."); err != nil {
		return nil, err
	}
	out.Reset()
	fmt.Fprintf(&out, "date: %s, %s,\n", time.Now().UTC().Format(time.DateOnly), document.Commit())
	if err := versions(&out); err != nil {
		return nil, err
	}
	for round := range m.rounds {
		todo := parts
		if m.long && round < longRounds {
			todo = append(todo[:len(todo):len(todo)], longParts...)
		}
		for _, p := range todo {
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, m.rounds, p.bench)
			benchtime := m.benchtime
			if p.once {
				benchtime = "1ns" // not 1x, which is a trial run
			}
			var args []string
			if !p.plain {
				args = strings.Fields(m.exec)
			}
			args = append(args, binary, "-test.run", "^$",
				"-test.bench", p.bench, "-test.cpu", p.cpu, "-test.benchtime", benchtime, "-test.timeout", "1h")
			if err := command(&out, []string{"GATEHOUSE_LONG=1"}, args...); err != nil {
				return nil, err
			}
		}
	}
	return out.Bytes(), nil
}

// versions writes what is measured.
func versions(w io.Writer) error {
	var out bytes.Buffer
	if err := command(&out, nil, "go", "env", "GOVERSION"); err != nil {
		return err
	}
	fmt.Fprintf(w, "go: %s", out.String())
	out.Reset()
	if err := command(&out, nil, "go", "list", "-m", "-f", "{{if not .Main}}{{.Path}} {{.Version}}{{end}}",
		"github.com/sethvargo/go-limiter", "golang.org/x/time", "github.com/throttled/throttled/v2", "github.com/go-chi/httprate",
		"github.com/ulule/limiter/v3", "github.com/didip/tollbooth/v8", "github.com/go-redis/redis_rate/v10", "github.com/redis/go-redis/v9"); err != nil {
		return err
	}
	fmt.Fprintf(w, "peers: %s\n", strings.Join(strings.Split(strings.TrimSpace(out.String()), "\n"), ", "))
	out.Reset()
	if command(&out, nil, "redis-server", "--version") == nil {
		for field := range strings.FieldsSeq(out.String()) {
			if version, ok := strings.CutPrefix(field, "v="); ok {
				fmt.Fprintf(w, "redis: redis-server %s\n", version)
			}
		}
	}
	return nil
}

// command runs a program, and adds what it prints to out.
func command(out *bytes.Buffer, env []string, args ...string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, tail(out.String()))
	}
	return nil
}

func tail(s string) string {
	const length = 2000
	return s[max(len(s)-length, 0):]
}
