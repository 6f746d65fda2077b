package redislimit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// TakeAll returns a function that has each of some subjects take one unit, all of
// them in one batch.
func TakeAll(l *Limiter, plan *ratelimit.Plan) func(subjects []string) error {
	return func(subjects []string) error {
		b := new(batch)
		for _, subject := range subjects {
			b.join(operation{code: opTake, subject: subject, plan: plan, cost: 1}, 1)
		}
		return b.exchange(l)
	}
}

// PeekAll does the same with one Peek of each, and returns how much is left for it.
func PeekAll(l *Limiter, plan *ratelimit.Plan, subjects ...string) (left []int64, err error) {
	b := new(batch)
	for _, subject := range subjects {
		b.join(operation{code: opPeek, subject: subject, plan: plan, cost: 1}, 1)
	}
	err = b.exchange(l)
	for _, g := range b.groups {
		d, _ := g.view(plan, 1)
		left = append(left, d.Remaining())
	}
	return left, err
}

// HoldTooLate has a held charge made for a caller that has waited until its deadline.
func HoldTooLate(l *Limiter, c ratelimit.Charge) {
	b := new(batch)
	b.join(operation{code: opTake, subject: c.Subject, plan: c.Plan, cost: c.Cost, holder: l.Hold("id", time.Hour).(*holder)}, 1)
	b.seal()
	b.groups[0].first.leave(context.DeadlineExceeded)
	l.sender.send(b.groups)
}

// TakeTooLate has equal charges made in one batch: for a caller that waits for them, and for
// three that have waited until their deadline.
func TakeTooLate(l *Limiter, charges ...ratelimit.Charge) {
	c := charges[0]
	op := operation{code: opTake, subject: c.Subject, plan: c.Plan, cost: c.Cost}
	if len(charges) > 1 {
		op = operation{code: opTakeAll, subject: c.Subject, takes: newTakes(charges)}
	}
	b := new(batch)
	b.join(op, 4)
	b.seal()
	for late := b.groups[0].first.next; late != nil; late = late.next {
		late.leave(context.DeadlineExceeded)
	}
	l.sender.send(b.groups)
}

// Bans bans subjects, some at a time.
func Bans(l *Limiter, subjects []string, length time.Duration) error {
	for subjects := range slices.Chunk(subjects, maxGroups) {
		b := new(batch)
		for _, subject := range subjects {
			b.join(operation{code: opBan, subject: subject, length: length, reason: engine.ReasonByHand}, 1)
		}
		if err := b.exchange(l); err != nil {
			return err
		}
	}
	return nil
}

// join enters calls for one operation into a batch.
func (b *batch) join(op operation, calls int) {
	for range calls {
		b.add(op, newCall())
	}
}

// exchange sends the batch, and waits for the answers.
func (b *batch) exchange(l *Limiter) error {
	b.seal()
	var calls []*call
	for _, g := range b.groups {
		for c := g.first; c != nil; c = c.next {
			calls = append(calls, c)
		}
	}
	l.sender.send(b.groups)
	for _, c := range calls {
		<-c.ready
	}
	for _, g := range b.groups {
		if g.err != nil {
			return g.err
		}
	}
	return nil
}

// SubjectsOfOneIndex returns n subjects that share an index of bans.
func SubjectsOfOneIndex(n int) (subjects []string) {
	for i := 0; len(subjects) < n; i++ {
		if subject := fmt.Sprint("one of many ", i); partition(subject) == 7 {
			subjects = append(subjects, subject)
		}
	}
	return subjects
}

// Script is the text of the script, and ScriptDigest its digest.
var Script, ScriptDigest = script, scriptDigest

// OnlyFastPart has the script fail with whatever its fast parts leave to its operations, until
// the test ends.
func OnlyFastPart(t testing.TB) {
	t.Helper()
	text, digested := script, scriptDigest
	t.Cleanup(func() { script, scriptDigest = text, digested })
	script = formatText + fastText + leaseText + "return redis.error_reply('left to the operations')"
	scriptDigest = redis.NewScript(script).Hash()
}

// Key returns the name of a subject's key.
func Key(l *Limiter, subject string) string {
	return l.sender.keys.subject(partition(subject), subject)
}

// Outlasts returns until when a subject's key must last, in Unix seconds, if its value is text.
func Outlasts(t testing.TB, text string) (last int64) {
	t.Helper()
	if text[0] == '\xff' { // a reason
		text = text[2+text[1]:]
	}
	v, err := (&answer{bytes: text}).value()
	if err != nil {
		t.Errorf("%q: %v", text, err)
	}
	last = v.expirySecond
	for _, w := range v.windows[:v.n] {
		last = max(last, w.endSecond)
	}
	return last
}

// Prefix returns how all keys begin.
func Prefix(l *Limiter) string {
	prefix, _, _ := strings.Cut(l.sender.keys.index(0), "{")
	return prefix
}

// WarnOfEviction does what the engine does once a minute.
func WarnOfEviction(l *Limiter, c *redis.Client) error {
	return l.sender.checkEviction(context.Background(), c)
}

// MinuteAfterEviction lets a minute pass since then.
func MinuteAfterEviction(l *Limiter) { l.sender.asked.Store(0) }

// Die forgets what an engine holds, as if its process died.
func Die(l *Limiter) {
	l.holds.Range(func(_, h any) bool { h.(*hold).forget(); return true })
}

// Renew has an engine renew what it holds.
func Renew(l *Limiter) (err error) {
	l.holds.Range(func(_, value any) bool {
		if h := value.(*hold); h.settled.Load() == 0 {
			_, _, err = l.do(context.Background(), operation{code: opRenew, subject: h.subject, change: &change{hold: h}})
		}
		return err == nil
	})
	return err
}

// HoldsKey returns the name of the key of what is held of a subject.
func HoldsKey(l *Limiter, subject string) string {
	return l.sender.keys.holds(partition(subject), subject)
}

// Holding returns a function that has an engine hold what it holds now for a request: as if the
// answer to what it did meanwhile was lost.
func Holding(l *Limiter, subject, id string) func() {
	h := l.held(id, subject)
	return func() { l.holds.Store(holdKey{id, subject}, h) }
}

// Renewing reports whether an engine will renew what it holds.
func Renewing(l *Limiter) bool { return l.renewing.Load() }

// Held returns how much an engine holds.
func Held(l *Limiter) (n int) {
	l.holds.Range(func(any, any) bool { n++; return true })
	return n
}

// RenewAfter lets some time pass since holds were renewed, and since settling them began. It
// returns how many are renewed then.
func RenewAfter(l *Limiter, renewed, settled time.Duration) (n int) {
	l.holds.Range(func(_, value any) bool {
		h := value.(*hold)
		h.renewed = h.renewed.Add(-renewed)
		h.settled.Add(-int64(settled))
		return true
	})
	l.renewAll()
	l.holds.Range(func(_, value any) bool {
		if time.Since(value.(*hold).renewed) < renewed {
			n++
		}
		return true
	})
	return n
}
