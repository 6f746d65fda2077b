package failover

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A merger has the primary make the adjustments that the journal holds.
type merger struct {
	primary ratelimit.Adjuster // nil unless the mode is FailLocal: the journal is then empty
	journal *journal
	dropped atomic.Uint64
}

// errBacksOff says that the primary does not know all of the subject's usage, and
// refuses it.
var errBacksOff = errors.New("failover: usage of the subject is not merged")

// bring merges what the journal holds of subject. A request brings the usage of its
// subject before the primary decides, so that an outage grants no second quota.
func (m *merger) bring(ctx context.Context, subject string) error {
	e, backsOff := m.journal.find(subject)
	for ; e != nil; e, backsOff = m.journal.find(subject) {
		if backsOff {
			return errBacksOff
		}
		if err := m.merge(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// merge makes the charges of e. A charge that fails stays in the journal, and is repeated
// as it is. One that the primary finds invalid is dropped.
func (m *merger) merge(ctx context.Context, e *entry) error {
	select {
	case e.merging <- struct{}{}:
		defer func() { <-e.merging }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		c, ok := m.journal.next(e)
		if !ok {
			return nil
		}
		err := m.send(ctx, e.subject, &c)
		switch {
		case errors.Is(err, ratelimit.ErrInvalid):
			m.dropped.Add(1)
		case err != nil:
			return err
		}
		m.journal.made(e, c.id)
	}
}

func (m *merger) send(ctx context.Context, subject string, c *charge) (err error) {
	defer recovered(&err)
	return m.primary.Adjust(ctx, subject, &c.d, c.units, c.id)
}

// recovered makes a panic of the primary an error: in the background it ends the process.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("failover: the primary panicked: %v", p)
	}
}

// mergeAll merges what the journal holds, until the context ends. It merges some
// entries at once, so that a few which hang do not keep it from the others, and tries
// each several times.
func (m *merger) mergeAll(ctx context.Context) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, 32)
	for _, e := range m.journal.all(func(*entry) bool { return true }) {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			for try := 0; try < 3 && m.merge(ctx, e) != nil; try++ {
			}
		})
	}
	wg.Wait()
}
