package failover

import (
	"context"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A verdict is what became of a request whose caller left the primary before it
// answered.
type verdict struct {
	stands bool  // a charge may stand
	at     int64 // otherwise: the time under which the request is in the journal, Unix nanoseconds; 0: it is not
}

// settle takes back what a late answer charged, if the request was charged
// elsewhere or was not admitted.
func (l *Limiter) settle(c *call, v verdict) {
	l.noteLate(c)
	if v.stands || c.err != nil || !c.d.Allowed() {
		return
	}
	l.late.Add(1)
	if v.at != 0 && l.journal.credit(c.subject, c.plan, c.cost, v.at) {
		return
	}
	if l.capable.refunder == nil {
		return
	}
	// Without this, a panic of the primary would end the process.
	defer func() { _ = recover() }()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx.Context), l.patience)
	defer cancel()
	// What cannot be given back stays charged, once too often.
	_ = l.capable.refunder.Refund(ctx, c.subject, &c.d)
}

// noteLate remembers a late denial, since it says that a quota is used up. A
// late admission is not remembered, because its charge may be taken back.
func (l *Limiter) noteLate(c *call) {
	denied := c.err == nil && c.d.Outcome != ratelimit.Allowed
	if denied && c.subject != probe && c.plan != nil && c.d.Plan == c.plan {
		l.shadow.note(c.subject, &c.d, c.commands)
	}
}
