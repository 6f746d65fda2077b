package sched_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/animalstore/gatehouse/ratelimit/internal/interleave/atomic"
	"github.com/animalstore/gatehouse/ratelimit/internal/interleave/sched"
	"github.com/animalstore/gatehouse/ratelimit/internal/interleave/sync"
)

// Leaving out schedules loses no outcome: what random programs can answer is the
// same with all schedules. An order of calls that says less than another one, for
// the same answers, may be lost.
func TestLeavesOutNoOutcome(t *testing.T) {
	const seeds = uint64(60)
	var all, fewer int
	for seed := range seeds {
		p := newRandomProgram(seed)
		want, runs := p.outcomes(sched.Options{Preemptions: 2, Every: true})
		all += runs
		got, runs := p.outcomes(sched.Options{Preemptions: 2})
		fewer += runs
		for o := range want {
			if !covered(o, got) {
				t.Errorf("program %d: %+v was not met\n%s", seed, o, p.text)
			}
		}
		for o := range got {
			if !want[o] {
				t.Errorf("program %d: %+v was met, and is not among all", seed, o)
			}
		}
	}
	if fewer*4 > all*3 {
		t.Errorf("%d of %d schedules were run, want less than three quarters", fewer, all)
	}
}

// An outcome is what a random program answered, and which calls came before
// which.
type outcome struct {
	answers string
	before  uint64
}

func covered(o outcome, by map[outcome]bool) bool {
	for other := range by {
		if other.answers == o.answers && o.before&^other.before == 0 {
			return true
		}
	}
	return false
}

type randomProgram struct {
	text    string
	threads [][][]operation // calls of each
}

type operation struct{ kind, place, value int }

func newRandomProgram(seed uint64) *randomProgram {
	r := rand.New(rand.NewPCG(seed, 0))
	p := &randomProgram{threads: make([][][]operation, 2+r.IntN(2))}
	for i := range p.threads {
		for range 1 + r.IntN(2) {
			var call []operation
			locked := false
			for range 1 + r.IntN(4) {
				o := operation{r.IntN(5), r.IntN(3), 1 + r.IntN(3)}
				if o.kind == 4 && locked {
					o.kind = 5
				}
				locked = locked && o.kind != 5 || o.kind == 4
				call = append(call, o)
			}
			if locked {
				call = append(call, operation{kind: 5})
			}
			p.threads[i] = append(p.threads[i], call)
		}
	}
	p.text = fmt.Sprint(p.threads)
	return p
}

// outcomes runs the program under all schedules.
func (p *randomProgram) outcomes(o sched.Options) (map[outcome]bool, int) {
	type span struct{ began, ended int }
	var places [3]atomic.Int64
	var mu sync.Mutex
	var answers [6][]int64
	var spans [6]span
	met := map[outcome]bool{}
	runs, failed := sched.Explore(sched.Program{
		Start: func() (threads []func()) {
			places, mu, answers, spans = [3]atomic.Int64{}, sync.Mutex{}, [6][]int64{}, [6]span{}
			for i, calls := range p.threads {
				threads = append(threads, func() {
					for k, call := range calls {
						n := 2*i + k
						spans[n].began, spans[n].ended = sched.Call(func() {
							for _, o := range call {
								answers[n] = append(answers[n], o.do(&places[o.place], &mu))
							}
						})
					}
				})
			}
			return threads
		},
		End: func() string {
			var before uint64
			for i, a := range spans {
				for k, b := range spans {
					if a.ended < b.began {
						before |= 1 << (6*i + k)
					}
				}
			}
			met[outcome{fmt.Sprint(answers, places), before}] = true
			return ""
		},
	}, o)
	if failed != nil {
		panic(failed.Text)
	}
	return met, runs
}

func (o operation) do(n *atomic.Int64, mu *sync.Mutex) int64 {
	switch o.kind {
	case 0, 1:
		return n.Load()
	case 2:
		n.Store(int64(o.value))
	case 3:
		if n.CompareAndSwap(int64(o.value-1), int64(o.value)) {
			return 1
		}
	case 4:
		mu.Lock()
	case 5:
		mu.Unlock()
	}
	return 0
}
