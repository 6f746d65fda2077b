package redislimit

import "github.com/animalstore/gatehouse/ratelimit"

// Batch returns a function that has each of some subjects take one unit, all of
// them in one batch.
func Batch(l *Limiter, plan *ratelimit.Plan) func(subjects []string) error {
	return func(subjects []string) error {
		b := new(batch)
		for _, subject := range subjects {
			b.join(question{op: opTake, subject: subject, plan: plan, cost: 1}, 1)
		}
		b.seal()
		l.send(b.groups)
		for _, g := range b.groups {
			if g.err != nil {
				return g.err
			}
		}
		return nil
	}
}

// Key returns the name of a subject's key.
func Key(l *Limiter, subject string) string { return l.keys.subject(partition(subject), subject) }
