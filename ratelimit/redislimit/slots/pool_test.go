package slots_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/ratelimit/redislimit/slots"
)

var must = testcheck.NoError

func TestMain(m *testing.M) {
	logging.Disable() // the client's, of servers that a test has killed
	if addr := os.Getenv("SLOTS_CHILD"); addr != "" {
		child(addr)
		return
	}
	os.Exit(m.Run())
}

// brief is a lease that ends soon, perhaps before a slow machine renews it.
const brief = time.Second

// child is the other process. It ends with the test.
func child(addr string) {
	p, err := slots.New(redis.NewClient(&redis.Options{Addr: addr}), "exports", brief)
	if err != nil {
		panic(err)
	}
	p.Wait(time.Minute)
	first, _ := p.Enter(context.Background(), "ann", 3)
	second, _ := p.Enter(context.Background(), "ann", 3)
	fmt.Println(first != nil, second != nil)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func clientOf(t testing.TB, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: time.Minute, DialerRetries: 1})
	t.Cleanup(func() { c.Close() })
	return c
}

// poolOf returns a Pool that waits for Redis however slow the machine is.
func poolOf(t testing.TB, c redis.UniversalClient, lease time.Duration) *slots.Pool {
	p, err := slots.New(c, "exports", lease)
	must(t, err)
	p.Wait(time.Minute)
	t.Cleanup(p.Close)
	return p
}

// newPool returns a Pool with a client of its own, which renews leases only if the test does.
func newPool(t testing.TB, addr string) *slots.Pool { return poolOf(t, clientOf(t, addr), time.Hour) }

// enter takes a slot, and fails the test unless the answer is as wanted.
func enter(t testing.TB, p *slots.Pool, subject string, limit int, want bool) (leave func()) {
	t.Helper()
	leave, err := p.Enter(t.Context(), subject, limit)
	if err != nil || (leave != nil) != want {
		t.Fatalf("Enter(%.20q, %d): a slot %v, error %v; want %v, nil", subject, limit, leave != nil, err, want)
	}
	return leave
}

// leases returns when the leases of a subject end, in their order.
func leases(c redis.UniversalClient, subject string) (ends []float64) {
	for _, z := range c.ZRangeWithScores(context.Background(), "inflight:exports:{"+subject+"}", 0, -1).Val() {
		ends = append(ends, z.Score)
	}
	return ends
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for !ok() {
		select {
		case <-t.Context().Done():
			t.Fatalf("%s: not until the test ended", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func TestNewRefuses(t *testing.T) {
	c, long := clientOf(t, "127.0.0.1:1"), strings.Repeat("a", 65)
	for _, test := range []struct {
		client redis.UniversalClient
		name   string
		lease  time.Duration
		want   string
	}{
		{nil, "a", time.Second, "a client, got nil"},
		{(*redis.Client)(nil), "a", time.Second, "a client, got nil"},
		{c, "", time.Second, `a name of 1 to 64 bytes without braces, got ""`},
		{c, long, time.Second, `a name of 1 to 64 bytes without braces, got "` + long + `"`},
		{c, "a{b", time.Second, `a name of 1 to 64 bytes without braces, got "a{b"`},
		{c, "a", time.Second - 1, "a lease from 1s to 1h, got 999.999999ms"},
		{c, "a", time.Hour + 1, "a lease from 1s to 1h, got 1h0m0.000000001s"},
	} {
		if _, err := slots.New(test.client, test.name, test.lease); err == nil || err.Error() != "slots: New needs "+test.want {
			t.Errorf("name %q, lease %v: error %v, want that New needs %s", test.name, test.lease, err, test.want)
		}
	}
}

// shared are tests that run on miniredis and on a server.
var shared = map[string]func(t *testing.T, addr string){
	"names":               testNames,
	"round trips":         testRoundTrips,
	"lost":                testLost,
	"concurrent requests": testConcurrentRequests,
	"admits the limit":    testAdmitsTheLimit,
}

func TestOnMiniredis(t *testing.T) {
	if _, err := exec.LookPath("redis-server"); err == nil {
		testenv.Long(t, "miniredis goes through the tests of TestOnServer")
	}
	for name, test := range shared {
		t.Run(name, func(t *testing.T) { test(t, miniredis.RunT(t).Addr()) })
	}
}

// Slots are counted by the limit's name and by subject, and a limit is that of its request.
func testNames(t *testing.T, addr string) {
	c := clientOf(t, addr)
	a, b := newPool(t, addr), newPool(t, addr)
	streams, err := slots.New(c, "streams", time.Hour)
	must(t, err)
	defer streams.Close()
	streams.Wait(time.Minute)
	for _, subject := range []string{"user:ann", "user:{bob}", "}{", "", strings.Repeat("x", 1000)} {
		leave := enter(t, a, subject, 2, true)
		enter(t, b, subject, 2, true)
		enter(t, a, subject, 2, false)
		enter(t, b, subject, 3, true)
		enter(t, a, subject, 1, false)
		enter(t, streams, subject, 1, true)
		leave()
		enter(t, a, subject, 3, true)
		enter(t, a, subject, 3, false)
		enter(t, a, subject, 0, false)
	}
	short := poolOf(t, c, time.Second) // does not let the key expire before the leases of others
	enter(t, short, "user:ann", 9, true)
	keys := c.Keys(t.Context(), "*").Val()
	for _, key := range keys {
		if ttl := c.PTTL(t.Context(), key).Val(); ttl < time.Hour/2 || ttl > time.Hour {
			t.Errorf("%.30s… expires in %v, want the longest of its leases", key, ttl)
		}
	}
	if len(keys) != 10 {
		t.Errorf("%d keys %.500q, want 10", len(keys), keys)
	}
}

// trips counts round trips. It calls before ahead of a pipeline that runs scripts, and after
// behind one that removes leases.
type trips struct {
	atomic.Int64
	before, after func()
}

func newTrips() *trips { return &trips{before: func() {}, after: func() {}} }

func (n *trips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (n *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" || cmd.Name() == "zrem" {
			n.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (n *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		switch cmds[0].Name() {
		case "eval":
			n.Add(1)
			n.before()
		case "zrem":
			defer func() { n.after() }()
		}
		return next(ctx, cmds)
	}
}

// All leases are renewed in one round trip. Nothing is sent for nothing, nor for a request that is
// certainly refused. One that ends while its lease is renewed, or the pool closed, gives its slot
// back.
func testRoundTrips(t *testing.T, addr string) {
	const requests, subjects = 300, 100
	c, n := clientOf(t, addr), newTrips()
	p := poolOf(t, c, time.Hour)
	enter(t, p, "ann", 1, true)() // the server knows the script
	c.AddHook(n)
	want := func(what string, trips int64) {
		t.Helper()
		if got := n.Swap(0); got != trips {
			t.Errorf("%s: %d round trips, want %d", what, got, trips)
		}
	}
	p.Renew()
	want("nothing to renew", 0)
	var leave []func()
	for i := range requests {
		leave = append(leave, enter(t, p, fmt.Sprint(i%subjects), requests/subjects, true))
	}
	want("entering", requests)
	enter(t, p, "0", requests/subjects, false)
	want("refused", 0)
	old := leases(c, fmt.Sprint(subjects-1))[2]
	eventually(t, "time passes", func() bool { return c.Time(t.Context()).Val().Add(time.Hour).UnixMilli() > int64(old) })
	p.Renew()
	want("renewing", 1)
	for i := range subjects {
		if ends := leases(c, fmt.Sprint(i)); len(ends) != requests/subjects || ends[0] <= old {
			t.Fatalf("subject %d has leases until %.0f, want %d, all after %.0f", i, ends, requests/subjects, old)
		}
	}
	leave[1]()
	leave[1]() // does nothing
	want("leaving", 1)
	for i, end := range []func(){leave[0], p.Close} {
		n.before = end
		p.Renew()
		if ends := leases(c, "0"); len(ends) != 2-2*i {
			t.Errorf("after the end of %d requests while leases were renewed %d are left, want %d", 1+2*i, len(ends), 2-2*i)
		}
	}
}

// Redis forgets all leases and scripts, and a reply is lost, so that the client repeats the call.
func testLost(t *testing.T, addr string) {
	proxy := redistest.StartProxy(t, addr)
	c, a, b := clientOf(t, addr), newPool(t, addr), newPool(t, proxy.Addr)
	enter(t, a, "ann", 3, true)
	leave := enter(t, a, "ann", 3, true)
	enter(t, b, "ann", 3, true)
	c.FlushAll(t.Context())
	c.ScriptFlush(t.Context())
	leave() // while it is lost
	a.Renew()
	b.Renew()
	enter(t, b, "ann", 2, false)
	proxy.CutAfter(0)
	enter(t, b, "ann", 3, true) // takes the last slot, although it asks for it twice
	if n := len(leases(c, "ann")); n != 3 || proxy.Cuts() != 1 {
		t.Errorf("%d leases, %d replies lost, want 3 and 1", n, proxy.Cuts())
	}
	c.ScriptFlush(t.Context())
	enter(t, a, "ann", 3, false)
}

// Requests of several processes come and go: never more than the limit run, and at the end all
// slots are free.
func testConcurrentRequests(t *testing.T, addr string) {
	const limit, processes, clients, subjects = 3, 4, 6, 3
	var running [subjects]atomic.Int64
	var pools []*slots.Pool
	var wg sync.WaitGroup
	for range processes {
		p := newPool(t, addr)
		for range clients {
			wg.Go(func() {
				for range race.Fewer(100) {
					ctx, cancel := context.WithCancel(t.Context())
					if rand.N(3) == 0 {
						cancel()
					}
					i := rand.N(subjects)
					leave, err := p.Enter(ctx, fmt.Sprint(i), limit)
					if leave != nil {
						if now := running[i].Add(1); now > limit || err != nil {
							t.Errorf("%d requests of a subject at once, error %v, want at most %d, nil", now, err, limit)
						}
						time.Sleep(rand.N(time.Millisecond))
						running[i].Add(-1)
						leave()
					}
					cancel()
				}
			})
		}
		wg.Go(func() { // at the same time
			for range 50 {
				p.Renew()
			}
		})
		pools = append(pools, p)
	}
	wg.Wait()
	for _, p := range pools {
		if n := p.Size(); n != 0 {
			t.Errorf("at the end a pool holds %d things, want none", n)
		}
	}
	if keys := clientOf(t, addr).Keys(t.Context(), "*").Val(); len(keys) != 0 {
		t.Errorf("at the end Redis has %q", keys)
	}
}

// As many requests as the limit allows are admitted, wherever and however many come at once, again
// and again.
func testAdmitsTheLimit(t *testing.T, addr string) {
	const limit, each = 5, 5
	pools := []*slots.Pool{newPool(t, addr), newPool(t, addr), newPool(t, addr)}
	for range race.Fewer(50) {
		var wg sync.WaitGroup
		leave := make(chan func(), len(pools)*each)
		for _, p := range slices.Repeat(pools, each) {
			wg.Go(func() {
				if l, _ := p.Enter(t.Context(), "ann", limit); l != nil {
					leave <- l
				}
			})
		}
		wg.Wait()
		close(leave)
		if len(leave) != limit {
			t.Fatalf("%d of %d requests admitted, want %d", len(leave), cap(leave), limit)
		}
		for leave := range leave {
			leave()
		}
	}
}

// slow is a Redis that gives out all slots, each after some time, and notes when leases are renewed.
type slow struct {
	answer  time.Duration
	renewed []time.Time
}

func (s *slow) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *slow) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		time.Sleep(s.answer)
		if script, ok := cmd.(*redis.Cmd); ok {
			script.SetVal(int64(1))
		}
		return nil
	}
}

func (s *slow) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(context.Context, []redis.Cmder) error {
		s.renewed = append(s.renewed, time.Now())
		return nil
	}
}

// Leases are renewed three times in their duration. A request waits for Redis for 250 ms, and no
// other does while its answer is late.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}), new(slow) // without DNS
		defer c.Close()
		c.AddHook(s)
		p, err := slots.New(c, "exports", 9*time.Second)
		must(t, err)
		defer p.Close()
		began := time.Now()
		leave := enter(t, p, "ann", 9, true)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if want := []time.Time{began.Add(3 * time.Second), began.Add(6 * time.Second), began.Add(9 * time.Second)}; !slices.Equal(s.renewed, want) {
			t.Errorf("leases of 9s are renewed at %v, want %v", s.renewed, want)
		}
		s.answer = time.Minute
		for _, want := range []struct {
			err  string
			wait time.Duration
		}{
			{"slots: no answer from Redis within 250ms", 250 * time.Millisecond},
			{"slots: an earlier call is not answered yet", 0},
		} {
			began := time.Now()
			l, err := p.Enter(t.Context(), "ann", 9)
			if waited := time.Since(began); l == nil || fmt.Sprint(err) != want.err || waited != want.wait {
				t.Errorf("a slot %v, error %v after %v, want one with %q after %v", l != nil, err, waited, want.err, want.wait)
			}
		}
		began = time.Now()
		leave()
		if waited := time.Since(began); waited != 0 {
			t.Errorf("leave waited for %v", waited)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		s.answer = 249 * time.Millisecond
		enter(t, p, "ann", 9, true)
		s.answer = time.Minute
		_, _ = p.Enter(t.Context(), "ann", 9)
		p.Close() // while an answer is late
		if _, err := p.Enter(t.Context(), "ann", 9); fmt.Sprint(err) != "slots: the Pool is closed" {
			t.Errorf("after Close: error %v, want that the Pool is closed", err)
		}
		time.Sleep(time.Minute)
	})
}

// A lease lasts as long as it says by the clock of Redis, whatever the clocks of processes are. A
// process that renews it later, as it was paused, has it again: up to twice the limit run then.
func TestClocks(t *testing.T) {
	for _, ahead := range []time.Duration{-24 * time.Hour, 24 * time.Hour} { // of Redis
		m := miniredis.RunT(t)
		now := time.Now().Add(ahead)
		pass := func(d time.Duration) {
			now = now.Add(d)
			m.SetTime(now)
		}
		pass(0)
		a, b := newPool(t, m.Addr()), newPool(t, m.Addr())
		enter(t, a, "ann", 1, true)
		for range 3 {
			a.Renew()
			pass(time.Hour - time.Millisecond)
			enter(t, b, "ann", 1, false)
		}
		pass(time.Millisecond) // the lease ends
		leave := enter(t, b, "ann", 1, true)
		a.Renew() // its request still runs
		enter(t, b, "ann", 2, false)
		leave()
		enter(t, b, "ann", 1, false)
	}
}

// Without an answer of Redis, and after Close, each process limits its own requests. Close gives
// back all slots.
func TestOutageAndClose(t *testing.T) {
	m := miniredis.RunT(t)
	alone := func(p *slots.Pool, want string) (leave func()) {
		t.Helper()
		for i := range 3 {
			l, err := p.Enter(t.Context(), "ann", 2)
			if (l != nil) != (i < 2) || i < 2 && !strings.HasPrefix(fmt.Sprint(err), want) || i == 2 && err != nil {
				t.Errorf("request %d: a slot %v, error %v, want slots for two with %q…", i, l != nil, err, want)
			}
			if i == 0 {
				leave = l
			}
		}
		return leave
	}
	c, n := clientOf(t, m.Addr()), newTrips()
	c.AddHook(n)
	p, other := poolOf(t, c, time.Hour), newPool(t, m.Addr())
	m.SetError("LOADING Redis is loading the dataset in memory")
	leave := alone(p, "slots: LOADING")
	m.SetError("")
	leave()
	enter(t, other, "ann", 1, true)() // Redis does not know of the one that runs
	p.Renew()
	enter(t, other, "ann", 1, false)
	n.after = func() {
		n.after = func() {}
		p.Renew() // while Close has not returned
	}
	p.Close()
	enter(t, other, "ann", 1, true)()
	other.Close()
	alone(other, "slots: the Pool is closed")
	eventually(t, "the goroutines have ended", func() bool {
		var stacks strings.Builder
		_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
		return !strings.Contains(stacks.String(), "slots.(*Pool)")
	})
}
