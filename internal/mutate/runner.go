package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// A result tells what became of a change.
type result int

const (
	noticed result = iota
	notNoticed
	notCompiled
	same // instructions as without the change
)

// A runner tries changes against the tests of some packages.
type runner struct {
	packages []string
	last     string // regular expression of the tests to run last, or ""
	skip     string // and of those not to run, or ""
	timeout  time.Duration
	parallel int
	dir      string // for changed sources and test binaries

	unchanged map[string][sha256.Size]byte // by package: its test binary
}

// choose returns n of the changes, in random order, or all of them if n is 0.
func choose(all []mutation, n int, seed uint64) []mutation {
	if n <= 0 || n >= len(all) {
		return all
	}
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:n]
}

// baseline runs the tests without a change, and sets the timeout by them.
func (r *runner) baseline() error {
	r.unchanged = map[string][sha256.Size]byte{}
	began := time.Now()
	for _, pkg := range r.packages {
		binary, err := r.build(pkg, "baseline", nil)
		if err != nil {
			return err
		}
		if r.unchanged[pkg], err = sum(binary); err != nil {
			return err
		}
		if out, err := r.test(pkg, binary, time.Hour); err != nil {
			return fmt.Errorf("the tests of %s fail without any change: %w\n%s", pkg, err, out)
		}
	}
	if r.timeout == 0 {
		r.timeout = 5*time.Since(began) + 10*time.Second
	}
	return nil
}

// each tries the changes and tells what becomes of each, in no order.
func (r *runner) each(all []mutation, tell func(mutation, result)) {
	todo := make(chan mutation)
	var telling sync.Mutex
	var workers sync.WaitGroup
	for i := range r.parallel {
		workers.Go(func() {
			for m := range todo {
				res := r.try(m, strconv.Itoa(i))
				telling.Lock()
				tell(m, res)
				telling.Unlock()
			}
		})
	}
	for _, m := range all {
		todo <- m
	}
	close(todo)
	workers.Wait()
}

// try runs the tests with a change. The name is that of the worker.
func (r *runner) try(m mutation, name string) result {
	res := same
	for _, pkg := range r.packages {
		binary, err := r.build(pkg, name, &m)
		if err != nil {
			return notCompiled
		}
		if s, err := sum(binary); err == nil && s == r.unchanged[pkg] {
			continue
		}
		if _, err := r.test(pkg, binary, r.timeout); err != nil {
			return noticed
		}
		res = notNoticed
	}
	return res
}

// build builds the test binary of a package, with the change if there is one,
// and returns its path. What is built of the same instructions is the same file.
func (r *runner) build(pkg, name string, m *mutation) (string, error) {
	binary := filepath.Join(r.dir, name+".test")
	args := []string{"test", "-c", "-vet=off", "-ldflags=-s -w -buildid=", "-o", binary}
	if m != nil {
		overlay, err := r.overlay(name, m)
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay", overlay)
	}
	if out, err := exec.Command("go", append(args, pkg)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the tests of %s: %w\n%s", pkg, err, out)
	}
	return binary, nil
}

// overlay writes the changed source and an overlay that names it.
func (r *runner) overlay(name string, m *mutation) (string, error) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	path, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(r.dir, name+".go"), filepath.Join(r.dir, name+".json")
	if err := os.WriteFile(changed, m.apply(source), 0o600); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// test runs a test binary: first all tests but the last ones.
func (r *runner) test(pkg, binary string, timeout time.Duration) (out []byte, err error) {
	if r.last == "" {
		return r.exec(pkg, binary, timeout, "-test.skip="+r.skip)
	}
	skip := r.last
	if r.skip != "" {
		skip += "|" + r.skip
	}
	if out, err = r.exec(pkg, binary, timeout, "-test.skip="+skip); err != nil {
		return out, err
	}
	return r.exec(pkg, binary, timeout, "-test.run="+r.last, "-test.skip="+r.skip)
}

func (r *runner) exec(pkg, binary string, timeout time.Duration, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout+5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, append(args, "-test.failfast", "-test.timeout="+timeout.String())...)
	cmd.Dir, cmd.WaitDelay = pkg, 5*time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.Bytes(), err
}

func sum(file string) ([sha256.Size]byte, error) {
	b, err := os.ReadFile(file)
	return sha256.Sum256(b), err
}
