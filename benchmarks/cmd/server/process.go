package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// patience is how long the command waits for anything before it fails.
const patience = time.Minute

// A process is a program that the command has started.
type process struct {
	name  string
	cmd   *exec.Cmd
	out   *tail         // standard error
	ended chan struct{} // closed when it has ended
	err   error         // of the program; read it after ended
}

// start starts a program in the directory dir, or here if that is "". The program gets
// SIGINT when ctx ends, and is killed when this process ends. Only the main goroutine, which
// owns the main thread, may call start: the kernel kills the program when the thread that
// started it ends. The program reads stdin and writes to stdout; both may be nil.
func start(ctx context.Context, name, dir string, stdin *os.File, stdout io.Writer, args ...string) (*process, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	p := &process{name: name, cmd: cmd, out: new(tail), ended: make(chan struct{})}
	if stdin != nil {
		cmd.Stdin = stdin
	}
	cmd.Stdout, cmd.Stderr = stdout, p.out
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	endWithParent(cmd)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// stop ends a process with SIGINT, or if that does not help, with SIGKILL.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		<-p.ended
		return p.failed(p.err)
	}
	select {
	case <-p.ended:
		return p.failed(p.err)
	case <-time.After(patience):
		p.kill()
		return fmt.Errorf("%s has not ended %v after SIGINT", p.name, patience)
	}
}

func (p *process) kill() {
	p.cmd.Process.Kill() //nolint:errcheck // it may have ended
	<-p.ended
}

// failed adds to an error what the process wrote to standard error.
func (p *process) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w\n%s", p.name, err, p.out)
}

// ticks is the unit of processor time in /proc, in parts of a second (USER_HZ).
const ticks = 100

// processorTime returns how much processor time the process has used, and the processes
// that it started.
func (p *process) processorTime() (time.Duration, error) {
	pid := strconv.Itoa(p.cmd.Process.Pid)
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	var sum int64
	found := false
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// The name of the program comes second, in brackets, and can have any character.
		end := bytes.LastIndexByte(text, ')')
		fields := strings.Fields(string(text[end+1:]))
		own := strings.HasPrefix(string(text), pid+" ")
		if !own && fields[1] != pid { // the parent
			continue
		}
		times := fields[11:13] // utime and stime
		if own {
			times = fields[11:15] // and those of children that have ended
			found = true
		}
		for _, field := range times {
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", file, err)
			}
			sum += n
		}
	}
	if !found {
		return 0, fmt.Errorf("%s has ended", p.name)
	}
	return time.Duration(sum) * (time.Second / ticks), nil
}

// memory returns the resident memory of the process in bytes.
func (p *process) memory() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/PID/status of %s has no VmRSS", p.name)
}

// A tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	const length = 4096
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(len(t.text)-length, 0):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
