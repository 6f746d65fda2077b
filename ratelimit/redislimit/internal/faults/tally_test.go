//go:build unix

package faults

import (
	"slices"
	"time"
)

// A tally is what became of requests, and how long they took.
type tally struct {
	admitted, denied, failed int64
	latencies                []time.Duration
}

func (t *tally) sent() int64 { return t.admitted + t.denied + t.failed }

func (t *tally) add(o *tally) {
	t.admitted += o.admitted
	t.denied += o.denied
	t.failed += o.failed
	t.latencies = append(t.latencies, o.latencies...)
}

// percentile returns what p percent of the requests did not exceed; 100: the worst.
func (t *tally) percentile(p int) time.Duration {
	if len(t.latencies) == 0 {
		return 0
	}
	slices.Sort(t.latencies)
	return t.latencies[(len(t.latencies)*p+99)/100-1]
}
