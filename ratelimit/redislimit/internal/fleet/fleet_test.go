//go:build unix

// Package fleet tests what package lease promises, with several processes in front of one
// Redis server: together they never admit more than a limit, while processes are killed and
// stopped, their clocks are wrong by a tenth, and the server is stopped and killed. It tests too
// that processes which are killed or stopped leave no charge that package redislimit holds. Each
// fault with fleets of each size takes three minutes:
//
//	go test ./ratelimit/redislimit/internal/fleet -long -v
package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/ratelimit/lease"
)

func TestMain(m *testing.M) {
	logging.Disable() // the client's, of a server that a test has killed
	for variable, be := range map[string]func(string) error{memberVariable: beMember, settlerVariable: beSettler} {
		config := os.Getenv(variable)
		if config == "" {
			continue
		}
		if err := be(config); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// A fleet is processes that limit together.
type fleet struct {
	*testing.T
	config  member // of all members
	slow    []float64
	server  *redistest.Server
	members []*process
	book    *book
	stats   lease.Stats // of the members that were not killed
}

// A process is a member that runs until it is told to end.
type process struct {
	*exec.Cmd
	told io.Closer
	out  bytes.Buffer
	err  strings.Builder
}

// newFleet starts a fleet. The clocks of its members are slow by the factors.
func newFleet(t *testing.T, slow []float64) *fleet {
	f := &fleet{T: t, slow: slow, members: make([]*process, len(slow))}
	f.server = redistest.Start(t, "--appendonly", "yes", "--appendfsync", "no") // kill -9 loses nothing
	f.config = member{Addr: f.server.Addr, Dir: t.TempDir(), Members: len(slow), Began: time.Now().Unix()}
	f.book = newBook(t, f.config.Dir, len(slow), f.config.Began)
	for i := range f.members {
		f.start(i)
	}
	return f
}

// start starts a member.
func (f *fleet) start(number int) {
	config := f.config
	config.Number, config.Slow = number, f.slow[number]
	text, err := json.Marshal(config)
	must(f.T, err)
	p := &process{Cmd: exec.Command(os.Args[0])}
	p.Env = append(os.Environ(), memberVariable+"="+string(text))
	p.Stdout, p.Stderr = &p.out, &p.err
	p.told, err = p.StdinPipe()
	must(f.T, err)
	must(f.T, p.Start())
	f.Cleanup(func() { p.kill() })
	f.members[number] = p
}

func (p *process) kill() {
	_ = p.Process.Kill()
	_ = p.Wait()
}

// run makes faults happen for some time, one after the other, and ends the fleet.
func (f *fleet) run(d time.Duration, faults ...fault) {
	begun := time.Now()
	for i := 0; time.Since(begun) < d; i++ {
		f.happen(faults[i%len(faults)], rand.IntN(len(f.members)))
	}
	time.Sleep(lasts) // for a member that was started last
	f.end()
}

func (f *fleet) end() {
	for _, p := range f.members {
		must(f.T, p.told.Close())
	}
	for i, p := range f.members {
		var s lease.Stats
		if err := errors.Join(p.Wait(), json.Unmarshal(p.out.Bytes(), &s)); err != nil {
			f.Errorf("member %d: %v\n%s", i, err, p.err.String())
		}
		f.stats.Local += s.Local
		f.stats.Asked += s.Asked
	}
}

// judge fails the test if more was admitted in a window than the limit.
func (f *fleet) judge() {
	windows := 0
	f.book.verdicts(func(v verdict) {
		windows++
		if v.over > 0 {
			f.Errorf("%d more were admitted than there were units for: %+v %+v", v.over, *v.subject, v)
		}
	})
	if windows == 0 || f.stats.Local == 0 && len(f.members) > 1 { // a single one may just have been killed
		f.Errorf("%d windows, %+v: no request was admitted from a share", windows, f.stats)
	}
	f.Logf("%d members, %d windows, %d decisions from shares, %d questions", len(f.members), windows, f.stats.Local, f.stats.Asked)
}

// All faults come to one fleet. In a long run, each fault comes to fleets of each size.
func TestNeverMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	t.Run("all faults", func(t *testing.T) {
		t.Parallel()
		f := newFleet(t, wrong(3))
		f.run(6*time.Second, killed, stopped, outage)
		f.judge()
	})
	for _, members := range []int{1, 3, 10} {
		for k := range faults {
			t.Run(fmt.Sprintf("%d members, %s", members, faultNames[k]), func(t *testing.T) {
				testenv.Long(t, "runs a fleet of each size with each fault")
				slow := wrong(members)
				if k == nothing {
					slow = slices.Repeat([]float64{1}, members)
				}
				f := newFleet(t, slow)
				f.run(8*time.Second, k)
				f.judge()
			})
		}
	}
}

// wrong returns how slow clocks are that are wrong by a tenth at most.
func wrong(members int) (slow []float64) {
	for i := range members {
		slow = append(slow, 1.1-0.2*float64(i)/float64(members))
	}
	return slow
}

// The control: if shares never end, more requests than the limit are admitted.
func TestSharesThatNeverEnd(t *testing.T) {
	t.Parallel()
	f := newFleet(t, []float64{1000, 1000, 1000})
	over := int64(0)
	for end := time.Now().Add(4 * time.Minute); over == 0 && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
		f.book.verdicts(func(v verdict) { over += v.over })
	}
	f.end()
	if over == 0 {
		t.Error("no more were admitted than the limit, want more: the test sees nothing")
	}
}
