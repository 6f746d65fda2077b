package slots

import "time"

func (p *Pool) Renew() { p.renew() }

// Wait sets how long a request waits for Redis.
func (p *Pool) Wait(d time.Duration) { p.budget = d }
