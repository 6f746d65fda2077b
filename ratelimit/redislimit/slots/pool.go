package slots

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/nilvalue"
)

// A Pool is one process's part of a shared limit. [New] makes it. It is safe for concurrent
// use, and must not be copied.
type Pool struct {
	client redis.UniversalClient
	name   string
	lease  time.Duration
	budget time.Duration   // how long a request waits for Redis
	late   sync.Map        // by master: how many calls were not answered within the budget, and still are not
	owner  string          // begins the ids of this pool's slots
	open   context.Context // until Close calls close
	close  context.CancelFunc

	mu    sync.Mutex
	last  uint64         // number of a slot
	held  map[slot]bool  // true if the request runs, false while Redis is asked about it
	count map[string]int // of held, by key
}

// A slot belongs to one request.
type slot struct{ key, id string }

//go:embed enter.lua
var enterText string

var enterScript = redis.NewScript(enterText)

// New returns a Pool in the Redis of client, and does not connect to it. All processes that
// share a limit give the same name, such as "exports", without braces. Each other limit on the
// same Redis, also of another program, needs another name: with the same, they share slots.
//
// lease, from 1s to 1h, is how long the slots of a process stay taken after it has crashed.
// A process that is paused for less than two thirds of it keeps them. 10s suits most.
// Processes may differ in it.
func New(client redis.UniversalClient, name string, lease time.Duration) (*Pool, error) {
	switch {
	case nilvalue.In(client):
		return nil, errors.New("slots: New needs a client, got nil")
	case name == "" || len(name) > 64 || strings.ContainsAny(name, "{}"):
		return nil, fmt.Errorf("slots: New needs a name of 1 to 64 bytes without braces, got %.70q", name)
	case lease < time.Second || lease > time.Hour:
		return nil, fmt.Errorf("slots: New needs a lease from 1s to 1h, got %v", lease)
	}
	p := &Pool{
		client: client, name: name, lease: lease, budget: 250 * time.Millisecond,
		owner: rand.Text()[:12] + ".", held: make(map[slot]bool), count: make(map[string]int),
	}
	p.open, p.close = context.WithCancel(context.Background())
	go p.run()
	return p, nil
}

// Enter takes a slot for a request of subject, of which limit may run at once. If there is
// none, leave is nil. Otherwise the caller must call leave when the request has ended; more
// calls do nothing.
//
// An error means that Redis did not decide. Then the limit applies to the requests of this
// process alone: leave is nil only if it has as many already.
//
// Enter waits for Redis for at most 250 ms, also if ctx ends earlier, and so does leave. The
// client gets the values of ctx.
func (p *Pool) Enter(ctx context.Context, subject string, limit int) (leave func(), err error) {
	s, ok := p.take("inflight:"+p.name+":{"+subject+"}", limit)
	if !ok {
		return nil, nil
	}
	ctx = context.WithoutCancel(ctx)
	var entered bool
	err = p.ask(s.key, func() (err error) {
		entered, err = enterScript.Run(ctx, p.client, []string{s.key}, p.lease.Milliseconds(), limit, s.id).Bool()
		return err
	})
	if err != nil {
		err = fmt.Errorf("slots: %w", err)
	} else if !entered {
		p.drop(s)
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held[s] = true
	return sync.OnceFunc(func() {
		p.drop(s)
		_ = p.ask(s.key, func() error { return p.client.ZRem(ctx, s.key, s.id).Err() }) // else the lease ends by itself
	}), err
}

// take makes a slot, unless this process has as many as the limit.
func (p *Pool) take(key string, limit int) (s slot, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.count[key] >= limit {
		return s, false
	}
	p.last++
	s = slot{key, p.owner + strconv.FormatUint(p.last, 36)}
	p.held[s] = false
	p.count[key]++
	return s, true
}

func (p *Pool) drop(s slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.held, s)
	if p.count[s.key]--; p.count[s.key] == 0 {
		delete(p.count, s.key)
	}
}

var errLate = errors.New("an earlier call is not answered yet")

// ask makes a call about a key, or all of them: "". It waits for the answer within the budget.
// While another call of the same master is late it makes none, so that a server that hangs
// delays few requests and holds few connections.
func (p *Pool) ask(key string, call func() error) error {
	var late atomic.Pointer[atomic.Int32]
	late.Store(p.lateOf(nil))
	switch {
	case p.open.Err() != nil:
		return errors.New("the Pool is closed")
	case late.Load().Load() > 0:
		return errLate
	}
	var err error
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		if cluster, ok := p.client.(*redis.ClusterClient); ok && key != "" {
			master, _ := cluster.MasterForKey(context.Background(), key) // may ask the cluster
			if late.Store(p.lateOf(master)); late.Load().Load() > 0 {
				err = errLate
				return
			}
		}
		err = call()
	}()
	select {
	case <-answered:
		return err
	case <-time.After(p.budget):
		calls := late.Load()
		calls.Add(1)
		go func() { <-answered; calls.Add(-1) }()
		return fmt.Errorf("no answer from Redis within %v", p.budget)
	}
}

// lateOf returns how many calls of a master are late. Nil is the only server, or not yet known.
func (p *Pool) lateOf(master *redis.Client) *atomic.Int32 {
	late, _ := p.late.LoadOrStore(master, new(atomic.Int32))
	return late.(*atomic.Int32)
}

// run renews the leases until Close. It does not wait for the answers: a master of a cluster
// that hangs must not end the leases on others.
func (p *Pool) run() {
	for tick := time.Tick(p.lease / 3); ; {
		select {
		case <-p.open.Done():
			return
		case <-tick:
			go p.renew()
		}
	}
}

// renew renews all leases, and adds those that Redis does not have. It sends the text of the
// script, which a server that has restarted does not know.
func (p *Pool) renew() {
	running, pipe, ctx := p.running(), p.client.Pipeline(), context.Background()
	for _, s := range running {
		enterScript.Eval(ctx, pipe, []string{s.key}, p.lease.Milliseconds(), math.MaxInt32, s.id)
	}
	_, _ = pipe.Exec(ctx) // what fails is renewed the next time
	p.mu.Lock()
	ended := slices.DeleteFunc(running, func(s slot) bool { return p.open.Err() == nil && p.held[s] })
	p.mu.Unlock()
	p.remove(ended) // their leases were perhaps added again
}

// running returns the slots of requests that run.
func (p *Pool) running() (all []slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s, runs := range p.held {
		if runs {
			all = append(all, s)
		}
	}
	return all
}

func (p *Pool) remove(slots []slot) {
	pipe, ctx := p.client.Pipeline(), context.Background()
	for _, s := range slots {
		pipe.ZRem(ctx, s.key, s.id)
	}
	_, _ = pipe.Exec(ctx) // else the leases end by themselves
}

// Close gives back the slots of all requests, also of those that still run, and ends the
// pool's goroutine. Call it after the server has shut down, so that the next process finds
// them free. It waits for Redis for at most 250 ms. After that, Enter returns an error.
func (p *Pool) Close() {
	_ = p.ask("", func() error {
		p.close() // first, so that no renewal adds them again
		p.remove(p.running())
		return nil
	})
	p.close()
}
