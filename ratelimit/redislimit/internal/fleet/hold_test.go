//go:build unix

package fleet

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// A settler is a process that holds what its requests are charged, and settles them.
type settler struct {
	Addr string
	File string // what it has settled
}

const (
	settlerVariable = "GATEHOUSE_FLEET_SETTLER"
	settledSubjects = 3
	holdTimeout     = time.Second
)

// endless is a plan whose window does not end during a test.
var endless = ratelimit.MustPlan("endless", ratelimit.Penalty{}, ratelimit.Quota{Limit: 1 << 52, Window: fixedwindow.MaxLength})

// beSettler makes requests until the standard input ends. Before it settles one, its file
// gets the units, and afterwards a mark.
func beSettler(config string) error {
	var s settler
	if err := json.Unmarshal([]byte(config), &s); err != nil {
		return err
	}
	l, err := redislimit.New(redis.NewClient(&redis.Options{Addr: s.Addr}), redislimit.Options{})
	if err != nil {
		return err
	}
	file, err := os.OpenFile(s.File, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	end, stop := context.WithCancelCause(context.Background())
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		stop(err)
	}()
	var requests sync.WaitGroup
	for subject := range settledSubjects {
		requests.Go(func() {
			for end.Err() == nil {
				if err := s.request(l, file, subject); err != nil {
					stop(err)
				}
			}
		})
	}
	requests.Wait()
	if err := context.Cause(end); err != context.Canceled {
		return err
	}
	return nil
}

// request makes one request, which is settled whatever the process meets meanwhile.
func (s *settler) request(l *redislimit.Limiter, file io.Writer, subject int) error {
	ctx, id, name := context.Background(), rand.Text(), strconv.Itoa(subject)
	d, err := l.Hold(id, holdTimeout).Take(ctx, name, endless, 1+mathrand.Int64N(1_000_000))
	if err != nil || !d.Allowed() {
		return nil // after a pause of the process the answer may be too late: the hold ends
	}
	time.Sleep(mathrand.N(50 * time.Millisecond))
	units := mathrand.Int64N(2_000_000)
	if _, err := fmt.Fprintln(file, subject, units); err != nil {
		return err
	}
	for l.Adjust(ctx, name, &d, units, id) != nil {
		time.Sleep(time.Millisecond)
	}
	_, err = fmt.Fprintln(file, subject, "done")
	return err
}

// A payroll is the settlers that have been started.
type payroll struct {
	*testing.T
	server *redistest.Server
	dir    string
	files  []string
	procs  []*process
}

func (p *payroll) start(place int) {
	s := settler{p.server.Addr, filepath.Join(p.dir, strconv.Itoa(len(p.files)))}
	p.files = append(p.files, s.File)
	text, err := json.Marshal(s)
	must(p.T, err)
	proc := &process{Cmd: exec.Command(os.Args[0])}
	proc.Env = append(os.Environ(), settlerVariable+"="+string(text))
	proc.Stderr = &proc.err
	proc.told, err = proc.StdinPipe()
	must(p.T, err)
	must(p.T, proc.Start())
	p.Cleanup(proc.kill)
	p.procs[place] = proc
}

// settled returns what was settled of each subject, and what a process that was killed may have
// settled.
func (p *payroll) settled() (sure [settledSubjects]int64, perhaps [settledSubjects][]int64) {
	for _, name := range p.files {
		text, err := os.ReadFile(name)
		if err != nil && !os.IsNotExist(err) {
			p.Fatal(err)
		}
		var open [settledSubjects]int64
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			first, rest, _ := strings.Cut(lines.Text(), " ")
			subject, err := strconv.Atoi(first)
			must(p.T, err)
			if rest == "done" {
				sure[subject] += open[subject]
				open[subject] = 0
			} else if open[subject], err = strconv.ParseInt(rest, 10, 64); err != nil {
				p.Fatal(err)
			}
		}
		for subject, units := range open {
			if units > 0 {
				perhaps[subject] = append(perhaps[subject], units)
			}
		}
	}
	return sure, perhaps
}

// sums returns what a subject may have used.
func sums(sure int64, perhaps []int64) []int64 {
	all := []int64{sure}
	for _, units := range perhaps {
		for _, sum := range slices.Clone(all) {
			all = append(all, sum+units)
		}
	}
	return all
}

// While processes are killed, and stopped for longer than the timeout, what is used in the end
// is what was settled: each request of a process that lives once, and of those that were killed
// none, except for some that they were about to settle.
func TestHoldsOfProcessesThatEnd(t *testing.T) {
	t.Parallel()
	p := &payroll{T: t, server: redistest.Start(t), dir: t.TempDir(), procs: make([]*process, 3)}
	for place := range p.procs {
		p.start(place)
	}
	rounds := 3
	if testenv.IsLong() {
		rounds = 10
	}
	for range rounds {
		victim := mathrand.IntN(len(p.procs))
		time.Sleep(300 * time.Millisecond)
		p.procs[victim].kill()
		p.start(victim)
		stopped := p.procs[(victim+1)%len(p.procs)]
		must(t, stopped.Process.Signal(syscall.SIGSTOP))
		time.Sleep(holdTimeout + 1500*time.Millisecond)
		must(t, stopped.Process.Signal(syscall.SIGCONT))
	}
	for _, proc := range p.procs {
		must(t, proc.told.Close())
	}
	for _, proc := range p.procs {
		if err := proc.Wait(); err != nil {
			t.Errorf("%v\n%s", err, proc.err.String())
		}
	}
	p.judge()
}

// judge fails the test unless what is used is right when what they held has expired.
func (p *payroll) judge() {
	l, err := redislimit.New(redis.NewClient(&redis.Options{Addr: p.server.Addr}), redislimit.Options{})
	must(p.T, err)
	sure, perhaps := p.settled()
	for subject := range settledSubjects {
		name, allowed, used := strconv.Itoa(subject), sums(sure[subject], perhaps[subject]), int64(0)
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
			d, err := l.Peek(context.Background(), name, endless)
			must(p.T, err)
			used = d.Used(0)
			if slices.Contains(allowed, used) {
				break
			}
			if time.Now().After(deadline) {
				p.Errorf("subject %d has used %d, want one of %d", subject, used, allowed)
				break
			}
		}
		if sure[subject] == 0 {
			p.Errorf("subject %d: no request was settled", subject)
		}
		p.Logf("subject %d: %d units were settled, %d perhaps, %d are used", subject, sure[subject], perhaps[subject], used)
	}
}
