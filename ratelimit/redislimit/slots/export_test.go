package slots

import "time"

func (p *Pool) Renew() { p.renew() }

// Wait sets how long a request waits for Redis.
func (p *Pool) Wait(d time.Duration) { p.budget = d }

// Size is how much the pool remembers.
func (p *Pool) Size() int { return len(p.held) + len(p.count) }
