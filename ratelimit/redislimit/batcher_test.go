package redislimit

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/internal/partial"
)

// A fakeServer is a batcher whose round trips take as long as the test says.
type fakeServer struct {
	batcher
	mu        sync.Mutex
	sent      [][]string // the subjects of each batch
	most, now int        // batches in flight at once
	roundTrip time.Duration
	perGroup  time.Duration // is added to it
	timeout   error         // of each batch; nil: it is answered
	changes   []error
}

func newFakeServer(maxInFlight int, roundTrip time.Duration) *fakeServer {
	s := &fakeServer{roundTrip: roundTrip}
	s.batcher.maxInFlight = maxInFlight
	s.batcher.changed = func(hangs error) { s.changes = append(s.changes, hangs) }
	s.batcher.send = func(groups []*group) error {
		s.mu.Lock()
		s.now++
		s.most = max(s.most, s.now)
		var subjects []string
		for _, g := range groups {
			for range g.requests {
				subjects = append(subjects, g.subject)
			}
		}
		s.sent = append(s.sent, subjects)
		roundTrip, timeout := s.roundTrip+time.Duration(len(groups))*s.perGroup, s.timeout
		s.mu.Unlock()
		time.Sleep(roundTrip) // of the test's clock
		s.mu.Lock()
		s.now--
		s.mu.Unlock()
		for _, g := range groups {
			g.err = timeout
			g.finish()
		}
		return timeout
	}
	return s
}

// set sets what happens to the batches that are sent from now on.
func (s *fakeServer) set(roundTrip time.Duration, timeout error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roundTrip, s.timeout = roundTrip, timeout
}

func (s *fakeServer) take(ctx context.Context, subject string) error {
	g, err := s.do(ctx, operation{code: opTake, subject: subject}, newCall())
	if err != nil {
		return err
	}
	return g.err
}

// batches returns the batches that were sent.
func (s *fakeServer) batches() [][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

// underBoth runs a test with a context that may end, and with one that cannot.
func underBoth(t *testing.T, test func(*testing.T, context.Context)) {
	t.Run("a context that may end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, t.Context()) })
	})
	t.Run("a context that cannot end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, context.Background()) })
	})
}

func TestCallsAreBatched(t *testing.T) {
	underBoth(t, func(t *testing.T, ctx context.Context) {
		s := newFakeServer(8, 100*time.Microsecond)
		go s.take(ctx, "first")
		synctest.Wait()
		for range 3 {
			go s.take(ctx, "hot")
			go s.take(ctx, "other")
		}
		synctest.Wait()
		time.Sleep(time.Second)
		want := []string{"hot", "hot", "hot", "other", "other", "other"}
		if sent := s.batches(); len(sent) != 2 || !slices.Equal(slices.Sorted(slices.Values(sent[1])), want) {
			t.Errorf("six calls while a batch was in flight were sent as %v, want one batch of %v", sent[1:], want)
		}
	})
}

// If round trips are long, the next batch does not wait until the last is back.
func TestLongRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const roundTrip = 10 * time.Millisecond
		s := newFakeServer(4, roundTrip)
		for range 100 { // the batcher learns how long they are
			if err := s.take(t.Context(), "a"); err != nil {
				t.Error(err)
			}
		}
		var calls sync.WaitGroup
		start := time.Now()
		for range 4 {
			calls.Go(func() {
				if err := s.take(t.Context(), "a"); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		calls.Wait()
		if took := time.Since(start); took != roundTrip {
			t.Errorf("four calls at once took %v, want one round trip of %v", took, roundTrip)
		}
		for range 100 {
			go s.take(t.Context(), "a")
		}
		time.Sleep(time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.most != 4 {
			t.Errorf("%d batches were in flight at once, want 4", s.most)
		}
	})
}

// A round trip that is long because the batch is large does not split the next batches.
func TestLargeBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer(8, 100*time.Microsecond)
		s.perGroup = 10 * time.Microsecond
		var calls sync.WaitGroup
		for i := range 64 {
			calls.Go(func() {
				for range 20 {
					if err := s.take(t.Context(), strconv.Itoa(i)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		calls.Wait()
		if s.most != 1 {
			t.Errorf("%d batches were in flight at once, want one: the round trip of a small one is short", s.most)
		}
	})
}

// A batch that is stuck, where round trips are short otherwise, holds up its own calls
// and no others.
func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer(4, time.Hour)
		go s.take(t.Context(), "stuck")
		synctest.Wait()
		s.set(time.Microsecond, nil)
		time.Sleep(time.Millisecond)
		start := time.Now()
		if err := s.take(t.Context(), "a"); err != nil || time.Since(start) != time.Microsecond {
			t.Errorf("beside a batch that is stuck: %v after %v, want one round trip of 1us", err, time.Since(start))
		}
		time.Sleep(2 * time.Hour)
	})
}

// While a master hangs, one batch at a time waits for it, and other calls fail immediately.
func TestHungMaster(t *testing.T) {
	const timeout = 200 * time.Millisecond
	underBoth(t, func(t *testing.T, ctx context.Context) {
		s := newFakeServer(4, time.Microsecond)
		take := func(promise string, want error, wait time.Duration) {
			t.Helper()
			start := time.Now()
			if err := s.take(ctx, "a"); !errors.Is(err, want) || time.Since(start) != wait {
				t.Errorf("%s: %v after %v, want %v after %v", promise, err, time.Since(start), want, wait)
			}
		}
		wantChanges := func(promise string, want ...error) {
			t.Helper()
			synctest.Wait()
			if !slices.Equal(s.changes, want) {
				t.Errorf("%s: the master hangs: %v, want %v", promise, s.changes, want)
			}
		}
		take("before", nil, time.Microsecond)
		s.set(timeout, os.ErrDeadlineExceeded)
		take("the first call that times out", os.ErrDeadlineExceeded, timeout)
		wantChanges("after a timeout", os.ErrDeadlineExceeded)
		for range 2 {
			go take("the one that waits", os.ErrDeadlineExceeded, timeout)
			synctest.Wait()
			for range 3 {
				take("beside one that waits", ratelimit.ErrUnavailable, 0)
			}
			time.Sleep(timeout)
			wantChanges("after further timeouts", os.ErrDeadlineExceeded)
		}
		s.set(timeout, nil)
		go take("the one that is answered", nil, timeout)
		synctest.Wait()
		take("beside one that is about to be answered", ratelimit.ErrUnavailable, 0)
		time.Sleep(timeout)
		wantChanges("after an answer", os.ErrDeadlineExceeded, nil)
		s.set(time.Microsecond, nil)
		go take("after an answer", nil, time.Microsecond)
		take("after an answer", nil, time.Microsecond)
		time.Sleep(time.Second)
		s.set(timeout, os.ErrDeadlineExceeded)
		take("when another master has the subjects", os.ErrDeadlineExceeded, timeout)
		s.retire()
		wantChanges("another master has the subjects", os.ErrDeadlineExceeded, nil, os.ErrDeadlineExceeded, nil)
		take("of a batcher that is no longer used", os.ErrDeadlineExceeded, timeout)
		s.retire()
		wantChanges("later", os.ErrDeadlineExceeded, nil, os.ErrDeadlineExceeded, nil)
	})
}

// An error is of one master if another one can decide: it has charged something since the first
// one began to fail, or a second before, and has not failed since.
func TestJudge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, table := new(batcher), new(batcher), new([partitions]*batcher)
		for i := range table {
			table[i] = []*batcher{a, b}[i%2]
		}
		m := masters{sender: &sender{logger: slog.New(slog.DiscardHandler)}}
		m.table.Store(table)
		fails := os.ErrDeadlineExceeded
		for i, step := range []struct {
			pause   time.Duration
			master  *batcher
			charges bool
			err     error
			part    bool
		}{
			{0, a, false, fails, false},
			{0, b, true, nil, false},
			{0, a, false, fails, true},
			{time.Hour, a, false, fails, true},
			{0, b, false, context.Canceled, false},
			{0, a, false, fails, true},
			{0, b, false, context.DeadlineExceeded, false},
			{0, a, false, fails, false},
			{0, b, false, nil, false}, // a denial
			{0, a, false, fails, false},
			{0, b, true, nil, false},
			{0, a, true, nil, false},
			{2 * time.Second, a, false, fails, false},
			{0, b, true, nil, false},
			{0, a, false, fails, true},
		} {
			time.Sleep(step.pause)
			err := m.judge(step.master, step.charges, step.err)
			if part := errors.Is(err, partial.ErrOutage); !errors.Is(err, step.err) || part != step.part {
				t.Errorf("step %d: %v, want that it is of one master: %v", i, err, step.part)
			}
		}
	})
}

// A batch that times out while another one is answered does not show that the master
// hangs. The calls of a client of one server, which has no other masters, never fail at
// once.
func TestTimeoutWithoutHungMaster(t *testing.T) {
	for _, name := range []string{"another batch is answered", "one server"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeServer(4, time.Minute)
				s.timeout = os.ErrDeadlineExceeded
				if name == "one server" {
					s.changed = nil
				}
				go s.take(t.Context(), "stuck")
				time.Sleep(time.Second)
				if s.set(time.Minute, nil); name != "one server" {
					s.set(time.Microsecond, nil)
					_ = s.take(t.Context(), "answered")
				}
				time.Sleep(time.Hour)
				var calls sync.WaitGroup
				for range 4 {
					calls.Go(func() {
						if err := s.take(t.Context(), "a"); err != nil {
							t.Errorf("after a batch that timed out: %v, want an answer", err)
						}
					})
					synctest.Wait()
				}
				calls.Wait()
				if len(s.changes) > 0 {
					t.Errorf("the master hangs: %v, want that it does not", s.changes)
				}
			})
		})
	}
}

func TestWithdrawnCallsAreNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeServer(1, time.Second)
		go s.take(t.Context(), "first")
		synctest.Wait()
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		var stayed sync.WaitGroup
		stayed.Go(func() {
			if err := s.take(t.Context(), "stays"); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		for _, subject := range []string{"leaves", "stays"} {
			if err := s.take(ctx, subject); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a caller whose time ends: %v, want %v", err, context.DeadlineExceeded)
			}
		}
		if took := time.Since(start); took != 10*time.Millisecond {
			t.Errorf("a caller with 10ms left after %v", took)
		}
		stayed.Wait()
		if sent := s.batches(); len(sent) != 2 || !slices.Equal(sent[1], []string{"stays"}) {
			t.Errorf("after two calls were withdrawn, %v was sent, want the call that stayed", sent[1:])
		}
	})
}

// A refund, which no caller waits for, waits for a slot that moves.
func TestRefundsWaitForTheirSlot(t *testing.T) {
	if g := newGroup(operation{code: opTake, subject: "a"}); !g.awaited() {
		t.Error("a group without calls is given up, want that it is sent again")
	}
}

// A held charge shares no answer and no command: another request's would be given back with it.
func TestHeldChargesAreNotShared(t *testing.T) {
	h, charges := new(holder), []ratelimit.Charge{{Subject: "a", Cost: 1}, {Subject: "b", Cost: 1}}
	for _, op := range []operation{
		{code: opTake, subject: "a", cost: 1},
		{code: opTakeAll, subject: "a", takes: newTakes(charges)},
	} {
		b := new(batch)
		for _, op.holder = range []*holder{h, nil, h, nil} {
			b.join(op, 1)
		}
		if len(b.groups) != 3 {
			t.Errorf("operation %c: %d groups, want one of each held charge, and one of the two others", op.code, len(b.groups))
		}
		for _, cmd := range new(sender).pack(b.groups) {
			if len(cmd.groups) > 1 {
				t.Errorf("operation %c: %d groups share a command, which has the terms of one", op.code, len(cmd.groups))
			}
		}
	}
}

// The script has 16 bits for how many requests a group makes, and 8 for the number of a subject.
func TestGroupsThatAreFull(t *testing.T) {
	b := new(batch)
	b.join(operation{code: opTake, subject: "a", cost: 1}, 1<<16)
	for _, g := range b.groups {
		if g.requests >= 1<<16 {
			t.Errorf("a group makes %d requests, want that it is full before", g.requests)
		}
	}
	b.empty()
	for i := range 256 {
		b.join(operation{code: opTakeAll, subject: "a", takes: newTakes([]ratelimit.Charge{{Subject: strconv.Itoa(i)}})}, 1)
	}
	for _, cmd := range new(sender).pack(b.groups) {
		if len(cmd.groups) >= 256 {
			t.Errorf("a call is about %d subjects, want that it is full before", len(cmd.groups))
		}
	}
}
