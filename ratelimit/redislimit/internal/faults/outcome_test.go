//go:build unix

package faults

import (
	"fmt"
	"slices"
)

// An outcome is what a run came to.
type outcome struct {
	counts []count
	phases [phases]tally
}

// hold holds what the callers saw against the promises, once they have stopped.
func (r *run) hold() (o outcome) {
	t := r.t
	if err := r.load.wrong.Load(); err != nil {
		t.Errorf("neither a decision nor, in time, an error that wraps ErrUnavailable: %v", *err)
	}
	if r.guard != nil {
		if err := r.guard.Close(); err != nil {
			t.Errorf("what was admitted meanwhile is not merged: %v", err)
		}
	}
	ended := int64(0)
	for phase := range o.phases {
		o.phases[phase] = r.load.total(phase)
		ended += o.phases[phase].sent()
	}
	if begun := r.load.begun(); begun != ended {
		t.Errorf("of %d requests %d were admitted, denied, or failed", begun, ended)
	}
	busy := r.busy()
	for _, s := range r.load.subjects {
		c := s.count(r.used(s))
		c.hasty = r.hasty
		c.spared = c.spared && !busy
		o.counts = append(o.counts, c)
	}
	for _, c := range o.counts {
		for _, p := range slices.Concat(r.arrangement.promises, r.scenario.promises) {
			if !p.holds(c) {
				t.Errorf("promised: %s; but %+v", p.text, c)
			}
		}
	}
	for _, c := range o.counts[:len(limited)] {
		if c.denied == 0 {
			t.Errorf("the run has not come to the limit, and shows nothing: %+v", c)
		}
	}
	return o
}

// busy reports whether the machine may have been so busy that the circuit opened without a
// fault.
func (r *run) busy() bool {
	return r.guard != nil && r.guard.Stats().Opened > 0 &&
		slices.ContainsFunc(r.load.subjects, func(s *subject) bool { return !s.away && s.refused.Load() > 0 })
}

func (o *outcome) sum(of func(count) int64) (sum int64) {
	for _, c := range o.counts {
		sum += of(c)
	}
	return sum
}

// over is how many requests were admitted above the limits.
func (o *outcome) over() int64 {
	return o.sum(func(c count) int64 { return max(c.admitted-c.limit, 0) })
}

// missing is how many were admitted and are not counted.
func (o *outcome) missing() int64 {
	return o.sum(func(c count) int64 { return max(c.admitted-c.counted, 0) })
}

// excess is how many are counted and were not admitted, or are counted twice.
func (o *outcome) excess() int64 {
	return o.sum(func(c count) int64 { return max(c.counted-c.admitted, 0) })
}

func (o *outcome) String() string {
	text := fmt.Sprintf("%d over a limit, %d not counted, %d counted too much", o.over(), o.missing(), o.excess())
	for phase, name := range phaseNames {
		t := &o.phases[phase]
		text += fmt.Sprintf("\n%-6s %6d sent, %5d admitted, %5d denied, %5d failed, p99 %v, worst %v",
			name, t.sent(), t.admitted, t.denied, t.failed, t.percentile(99), t.percentile(100))
	}
	return text
}
