package redislimit

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// A batcher sends calls to one master of Redis, those that come together in one
// round trip:
//
//	call      Take alice   Take alice   Take bob   Ban carol    what one caller asks for
//	               └─────┬──────┘          │           │
//	group           2 × Take alice     Take bob    Ban carol    calls with equal operations: one answer
//	                     └─────────────────┼───────────┘
//	batch               3 groups, sent in one round trip
//	                     ┌─────────────────┴───────────┐
//	command      EVALSHA alice bob            EVALSHA carol     one call of the script
//
// A call that finds no batch in flight is sent immediately. Calls that come while a batch
// is in flight wait together for the next batch, which is sent when that one is back.
// Few large batches cost least. More than one is in flight where the round trip is
// long, or where one is stuck.
//
// If a master does not decide a batch, nor one that was in flight meanwhile, it hangs, or is
// gone. Then one batch at a time is sent, and calls that come meanwhile fail immediately: they
// would only wait for nothing.
type batcher struct {
	maxInFlight int
	send        func([]*group) error // returns when the groups are answered, or wait for a slot; an error says that the master cannot decide
	changed     func(hangs error)    // called when the master begins to hang, and with nil when it answers; nil: no call fails without being sent

	mu       sync.Mutex
	queue    []*batch      // the first one is sent next, the last one takes calls
	spare    *batch        // an empty one, or nil
	inFlight int           // batches
	due      time.Time     // of the batch that was sent last
	lateness time.Duration // of batches, smoothed; negative: they come early
	answered time.Time     // when the last batch came back without such an error
	hangs    error         // of the calls that fail without being sent; nil: the master answers

	health health // has a lock of its own
}

// maxInFlight is how many batches are in flight to one master at most.
const maxInFlight = 8

// A batch is due after spacing, and perGroup for each of its groups. If batches are late, two may
// be in flight, and for each spacing that they are late one more. Without perGroup, large batches
// would be late, and be split into small ones, which cost the client and the server more.
const (
	spacing  = 250 * time.Microsecond
	perGroup = 10 * time.Microsecond
)

// yields is how often a batch that is back lets others run before the next one is
// sent. Once is not enough: a processor that was idle resumes the batch before the
// callers have run.
const yields = 3

// do has an operation done, and returns the group that has its answer. It returns
// the context's error as soon as the context ends.
func (b *batcher) do(ctx context.Context, op operation, c *call) (*group, error) {
	g, first, err := b.enqueue(op, c)
	if err != nil {
		return nil, err
	}
	if ctx.Done() == nil { // the caller waits for the answer in any case
		if first != nil {
			b.sendBatch(first)
		}
		<-c.ready
		return g, nil
	}
	if first != nil {
		go b.sendBatch(first)
	}
	select {
	case <-c.ready:
		return g, nil
	case <-ctx.Done():
		if c.leave(ctx.Err()) {
			return nil, ctx.Err()
		}
		<-c.ready
		return g, nil
	}
}

// enqueue enters a call. If a batch can be sent now, it is returned, for the caller
// to send.
func (b *batcher) enqueue(op operation, c *call) (*group, *batch, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hangs != nil && b.inFlight > 0 {
		return nil, nil, b.hangs
	}
	if n := len(b.queue); n == 0 || len(b.queue[n-1].groups) >= maxGroups {
		last := b.spare
		if b.spare = nil; last == nil {
			last = new(batch)
		}
		b.queue = append(b.queue, last)
	}
	g := b.queue[len(b.queue)-1].add(op, c)
	if !b.maySend() {
		return g, nil, nil
	}
	b.inFlight++
	return g, b.dequeue(), nil
}

// maySend reports whether one more batch may be in flight.
func (b *batcher) maySend() bool {
	switch {
	case b.inFlight == 0:
		return true
	case b.inFlight >= b.maxInFlight:
		return false
	}
	return b.lateness > time.Duration(b.inFlight-1)*spacing || time.Now().After(b.due)
}

// dequeue takes the batch that is sent next, nil if no call waits.
func (b *batcher) dequeue() *batch {
	for len(b.queue) > 0 {
		next := b.queue[0]
		b.queue = append(b.queue[:0], b.queue[1:]...)
		if next.seal() {
			next.sentAt = time.Now()
			next.due = next.sentAt.Add(spacing + time.Duration(len(next.groups))*perGroup)
			b.due = next.due
			return next
		}
		next.empty()
		b.spare = next
	}
	return nil
}

// waiting returns how many calls wait for the next batch.
func (b *batcher) waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return 0
	}
	return b.queue[0].calls
}

// sendBatch sends a batch, and has the next one sent when it is back.
func (b *batcher) sendBatch(sent *batch) {
	away := b.send(sent.groups)
	backAt := time.Now()
	// Let the callers that have their answers call again, so that their calls are in
	// one batch, and not in parts that take turns.
	for i := 0; i < yields && sent.calls > 1 && b.waiting() < sent.calls; i++ {
		runtime.Gosched()
	}
	sent.empty()
	b.back(sent, backAt, away)
}

// back records that a batch is back, and has the next one sent.
func (b *batcher) back(sent *batch, at time.Time, away error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spare = sent
	b.lateness += (at.Sub(sent.due) - b.lateness) / 8
	switch {
	case away == nil:
		b.answered = at
		if b.hangs != nil {
			b.changed(nil)
		}
		b.hangs = nil
	case b.changed != nil && !b.answered.After(sent.sentAt):
		if b.hangs == nil {
			b.changed(away)
		}
		b.hangs = unavailable(away)
	}
	if next := b.dequeue(); next != nil {
		go b.sendBatch(next)
	} else {
		b.inFlight--
	}
}

// retire ends the use of the batcher: another master has the subjects.
func (b *batcher) retire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hangs != nil {
		b.changed(nil)
	}
	b.hangs, b.changed = nil, nil
}
