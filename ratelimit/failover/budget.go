package failover

import (
	"context"
	"sync"
	"time"
)

// A budget is the context of one call of the primary. It is what
// context.WithTimeout would make, without a timer, since the goroutine that waits
// for the call has one and ends the context when it fires, and without a channel
// until Done is called. It is not used again, so that code which kept it sees that
// it has ended.
type budget struct {
	context.Context // the caller's, for values
	deadline        time.Time

	mu   sync.Mutex
	done chan struct{}
	err  error
}

// Deadline implements [context.Context].
func (b *budget) Deadline() (time.Time, bool) {
	if d, ok := b.Context.Deadline(); ok && d.Before(b.deadline) {
		return d, true
	}
	return b.deadline, true
}

// Done implements [context.Context].
func (b *budget) Done() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done == nil {
		b.done = make(chan struct{})
		if b.err != nil {
			close(b.done)
		}
	}
	return b.done
}

// Err implements [context.Context].
func (b *budget) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// end ends the context, for the first reason that is given.
func (b *budget) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return
	}
	b.err = err
	if b.done != nil {
		close(b.done)
	}
}
