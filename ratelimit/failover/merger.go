package failover

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A merger tells the primary what the journal holds.
type merger struct {
	primary ratelimit.Limiter
	capable capabilities // the primary's
	journal *journal
	merged  atomic.Uint64
}

// merge tells the primary what the claimed entry e says. What could not be done
// goes back into the journal. What the primary finds invalid is dropped.
func (m *merger) merge(ctx context.Context, e *entry) error {
	// Requests of the subject wait for the merging, but not for a primary that
	// does not return from it.
	stop := context.AfterFunc(ctx, func() { m.journal.release(e) })
	defer stop()
	merged := false // after a panic of the primary as well
	defer func() {
		if !merged {
			m.journal.restore(e)
		}
	}()
	if err := m.replay(ctx, e); err != nil {
		return err
	}
	merged = true
	m.journal.done(e)
	m.merged.Add(1)
	return nil
}

func (m *merger) replay(ctx context.Context, e *entry) error {
	if e.reset {
		if err := m.unlessInvalid(m.capable.resetter.Reset(ctx, e.subject)); err != nil {
			return err
		}
		e.reset = false
	}
	if e.unban {
		_, err := m.capable.banner.Unban(ctx, e.subject)
		if err := m.unlessInvalid(err); err != nil {
			return err
		}
		e.unban = false
	}
	if left := time.Until(time.Unix(0, e.ban)); e.ban != 0 && left > 0 {
		if err := m.unlessInvalid(m.capable.banner.Ban(ctx, e.subject, left)); err != nil {
			return err
		}
	}
	e.ban = 0
	for len(e.usage) > 0 {
		if err := m.unlessInvalid(charge(ctx, m.primary, e.subject, &e.usage[0])); err != nil {
			return err
		}
		e.usage = e.usage[1:]
	}
	return nil
}

// unlessInvalid returns err, unless the primary will never do what it refused.
func (m *merger) unlessInvalid(err error) error {
	if errors.Is(err, ratelimit.ErrInvalid) {
		m.journal.dropped.Add(1)
		return nil
	}
	return err
}

// errUnmerged says that the primary does not know all of the subject's usage,
// and could not take it in.
var errUnmerged = errors.New("failover: usage of the subject is not merged")

// bring merges what the journal has of subject, before a request of it is
// decided: no subject has a second quota until its turn to be merged has come.
func (m *merger) bring(ctx context.Context, subject string) error {
	if m.journal.refused(subject) {
		return errUnmerged
	}
	e, err := m.journal.claim(ctx, subject)
	if e == nil {
		return err
	}
	if err := m.merge(ctx, e); err != nil {
		return err
	}
	return ctx.Err() // the caller does not wait for the rest any more
}

// instead does a command of the primary that replaces orders in the journal.
// What the journal has of the subject cannot be merged meanwhile, so that an
// order given before the command is not carried out after it. Once the command
// is done, undo takes out of the entry what it replaces.
func (m *merger) instead(ctx context.Context, subject string, command func(context.Context) error, undo func(*entry)) error {
	e, err := m.journal.claim(ctx, subject)
	if err != nil {
		return err
	}
	if e != nil {
		stop := context.AfterFunc(ctx, func() { m.journal.release(e) })
		defer stop()
		defer m.journal.restore(e) // after a panic of the primary as well
	}
	if err := command(ctx); err != nil {
		return err
	}
	if e != nil {
		undo(e)
	}
	return nil
}
