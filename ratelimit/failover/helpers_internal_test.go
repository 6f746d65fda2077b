package failover

import "github.com/animalstore/gatehouse/ratelimit"

// add enters units that subject was admitted at a time, in Unix nanoseconds.
func (j *journal) add(subject string, plan *ratelimit.Plan, units, at int64) {
	j.enter(subject, charge{plan: plan, at: at, units: inEach(plan, units)})
}
