package activity

import (
	"cmp"
	"slices"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A Snapshot is what happened in the last [Seconds].
type Snapshot struct {
	Allowed   int64 // decisions, as in [ratelimit.Outcome]
	Limited   int64
	Banned    int64
	Suspended int64
	Undecided int64

	// PerSecond is the number of decisions in one second, on average over the last five
	// whole seconds.
	PerSecond float64

	// Owners and Networks are the subjects with the most decisions, the busiest first.
	Owners, Networks []Use
}

// A Use is how often a subject was allowed and denied (limited, banned or suspended).
type Use struct {
	Subject         string // such as "owner:ada"
	Allowed, Denied int64
}

// rateSeconds is how many whole seconds PerSecond averages.
const rateSeconds = 5

// Snapshot returns the counts, with at most n owners and n networks.
func (c *Counter) Snapshot(n int) Snapshot {
	now := c.now().Unix()
	var all sums
	for i := range c.stripes {
		all.addStripe(&c.stripes[i], now)
	}
	return Snapshot{
		Allowed:   all.totals[ratelimit.Allowed],
		Limited:   all.totals[ratelimit.Limited],
		Banned:    all.totals[ratelimit.Banned],
		Suspended: all.totals[ratelimit.Suspended],
		Undecided: all.totals[0],
		PerSecond: float64(all.recent) / rateSeconds,
		Owners:    all.owners.busiest(n),
		Networks:  all.networks.busiest(n),
	}
}

// sums are the counts of several seconds.
type sums struct {
	totals           [outcomes]int64
	recent           int64 // decisions in the last rateSeconds
	owners, networks uses
}

// addStripe copies each second before it adds it, so that it holds the lock for a moment
// only.
func (a *sums) addStripe(s *stripe, now int64) {
	for i := range s.seconds {
		s.mu.Lock()
		t := s.seconds[i]
		s.mu.Unlock()
		if t.unix <= now-Seconds || t.unix > now {
			continue // too old, or the clock has stepped back
		}
		for o, n := range t.totals {
			a.totals[o] += n
			if t.unix >= now-rateSeconds && t.unix < now {
				a.recent += n
			}
		}
		a.owners.add(&t.owners)
		a.networks.add(&t.networks)
	}
}

// uses are counts by subject.
type uses map[string]Use

func (u *uses) add(s *summary) {
	if *u == nil {
		*u = uses{}
	}
	for i := range s.counts[:s.used] {
		c := &s.counts[i]
		sum := (*u)[c.subject]
		sum.Allowed += int64(c.allowed)
		sum.Denied += int64(c.denied)
		(*u)[c.subject] = sum
	}
}

func (u uses) busiest(n int) []Use {
	list := make([]Use, 0, len(u))
	for subject, use := range u {
		use.Subject = subject
		list = append(list, use)
	}
	slices.SortFunc(list, func(x, y Use) int {
		return cmp.Or(cmp.Compare(y.Allowed+y.Denied, x.Allowed+x.Denied), cmp.Compare(x.Subject, y.Subject))
	})
	return slices.Clip(list[:min(n, len(list))])
}
