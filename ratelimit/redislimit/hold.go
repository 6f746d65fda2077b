package redislimit

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
)

// Hold implements [engine.Holder]. The timeout is rounded up to seconds. Each held charge is a call
// of the script of its own, and waits as Ban does while a cluster moves the slot of the subject. A
// held charge or a Peek gives back up to 1,000 expired holds. While the slot moves, or if Redis
// refuses to write, a Peek is answered without that. Redis keeps 220 bytes for each hold, and up to
// 1,000 more for a subject that has any. A Reset ends no holds.
func (l *Limiter) Hold(id string, timeout time.Duration) ratelimit.Limiter {
	return &holder{l, id, timeout}
}

// A holder is the engine for one request.
type holder struct {
	*Limiter
	id      string
	timeout time.Duration
}

func (l *holder) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	if err := l.check(); err != nil {
		return ratelimit.Decision{}, err
	}
	return l.take(ctx, l, subject, plan, cost)
}

func (l *holder) TakeAll(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	if err := l.check(); err != nil {
		return err
	}
	return l.takeAll(ctx, l, charges, decisions)
}

func (l *holder) check() error {
	if l.id == "" || l.timeout < time.Second || l.timeout > time.Hour {
		return fmt.Errorf("%w: Hold needs an id, and a timeout from 1s to 1h, got %q and %v", ratelimit.ErrInvalid, l.id, l.timeout)
	}
	return nil
}

// Adjust ends the holds of charges that TakeAll gives back in a cluster.
func (l *holder) Adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, _ string) error {
	return l.Limiter.Adjust(ctx, subject, d, units, l.id)
}

// terms returns what the script needs to hold charges, in place of their counts.
func (l *holder) terms(charges ...ratelimit.Charge) string {
	b := binary.BigEndian.AppendUint16([]byte{heldFollows}, l.seconds())
	for i := range charges {
		b = appendHeld(b, charges[i].Cost)
	}
	return string(append(b, l.id...))
}

func (l *holder) seconds() uint16 { return uint16((l.timeout + time.Second - 1) / time.Second) }

// appendHeld appends the front of the operation that gives a charge back: it has no time, and
// no quotas.
func appendHeld(b []byte, cost int64) []byte {
	return append(appendU64(append(b, opGiveBack), uint64(min(cost, fixedwindow.MaxUnits))), 0, 0, 0, 0, 0)
}

// A hold is a charge that Redis holds for a request of this process.
type hold struct {
	*holder
	subject string
	member  string       // of the sorted set
	renewed time.Time    // only renewAll changes it
	settled atomic.Int64 // when the first Adjust began, Unix nanoseconds; 0: none has
}

type holdKey struct{ id, subject string }

// keep notes that Redis holds a charge, and has it renewed until it is settled. The value is the
// subject's after the charge.
func (l *holder) keep(subject string, cost int64, value string) {
	n := len(value) / windowSize
	if len(value)%windowSize != 0 {
		n = (len(value) - recordSize) / windowSize
	}
	for n > 0 && value[8*n-8] >= smoothLength>>24 {
		n--
	}
	member := append(append(appendHeld(nil, cost), byte(n)), value[:8*n]...)
	h := &hold{holder: l, subject: subject, member: string(append(member, l.id...)), renewed: time.Now()}
	l.holds.Store(holdKey{l.id, subject}, h)
	l.renewLater()
}

// held returns what is held for a request, or nil.
func (l *Limiter) held(id, subject string) *hold {
	h, _ := l.holds.Load(holdKey{id, subject})
	held, _ := h.(*hold)
	return held
}

func (h *hold) forget() { h.holds.Delete(holdKey{h.id, h.subject}) }

// renewPause is a quarter of the shortest timeout.
const renewPause = time.Second / 4

// renewLater has the holds renewed after a pause. Calls during the pause change nothing.
func (l *Limiter) renewLater() {
	if l.renewing.CompareAndSwap(false, true) {
		time.AfterFunc(renewPause, l.renewAll)
	}
}

// remembered is how long an adjustment of a hold can be repeated.
const remembered = 10 * time.Minute

// renewAll renews each hold once a third of its timeout has passed, unless a call to settle it has
// begun: its request may have ended. Such a hold is forgotten when that call cannot be repeated
// any more.
func (l *Limiter) renewAll() {
	now := time.Now()
	l.holds.Range(func(_, value any) bool {
		h := value.(*hold)
		switch settled := h.settled.Load(); {
		case settled != 0 && now.UnixNano()-settled > int64(remembered):
			h.forget()
		case settled == 0 && now.Sub(h.renewed) > h.timeout/3:
			h.renewed = now
			go func() {
				_, _, _ = l.do(context.Background(), operation{code: opRenew, subject: h.subject, change: &change{hold: h}}) // else the next time
			}()
		}
		return true
	})
	l.renewing.Store(false)
	l.holds.Range(func(any, any) bool { l.renewLater(); return false }) // if there are some
}
