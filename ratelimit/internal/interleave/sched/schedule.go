package sched

import (
	"fmt"
	"strconv"
	"strings"
)

// A Schedule says which thread does how many steps: "A17 B8 A40". After its last step the
// threads go on without preemption.
type Schedule string

// A Failure is a run that is not as it should be.
type Failure struct {
	Schedule Schedule
	Text     string
}

// Replay runs a program under one schedule and records each step. It returns nil
// if nothing fails.
func Replay(p Program, s Schedule) (*Failure, []Event, error) {
	turns, err := s.turns()
	if err != nil {
		return nil, nil, err
	}
	r := newRun(p.Start(), true)
	r.finish(func(n *node) int {
		if done := len(r.path); done < len(turns) {
			return turns[done]
		}
		return n.first()
	})
	if r.failure == "" {
		r.failure = p.End()
	}
	if r.failure == "" {
		return nil, r.trace, nil
	}
	return &Failure{scheduleOf(r.path), r.failure}, r.trace, nil
}

func scheduleOf(path []node) Schedule {
	var parts []string
	for i := 0; i < len(path); {
		n := 1
		for i+n < len(path) && path[i+n].chosen == path[i].chosen {
			n++
		}
		parts = append(parts, fmt.Sprintf("%c%d", 'A'+path[i].chosen, n))
		i += n
	}
	return Schedule(strings.Join(parts, " "))
}

// turns returns the thread of each step.
func (s Schedule) turns() (turns []int, err error) {
	for part := range strings.FieldsSeq(string(s)) {
		thread := int(part[0]) - 'A'
		n, err := strconv.Atoi(part[1:])
		if err != nil || n < 1 || n > maxSteps || thread < 0 || thread >= MaxThreads {
			return nil, fmt.Errorf("schedule %q: %q must be a thread from A to %c and a number of steps from 1 to %d",
				s, part, 'A'+MaxThreads-1, maxSteps)
		}
		for range n {
			turns = append(turns, thread)
		}
	}
	return turns, nil
}

// Print returns recorded steps as text, each turn of a thread under its letter.
func Print(events []Event) string {
	var b strings.Builder
	for i, e := range events {
		if i == 0 || events[i-1].Thread != e.Thread {
			fmt.Fprintf(&b, "thread %c\n", 'A'+e.Thread)
		}
		fmt.Fprintf(&b, "%5d  %-7s place %-3d %-24s %s\n", i+1, e.What, e.Place, e.Result, e.Where)
	}
	return b.String()
}
