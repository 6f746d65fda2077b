package failover

import (
	"fmt"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

func TestEntry(t *testing.T) {
	at := func(offset time.Duration) int64 { return began.Add(offset).UnixNano() }
	other := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerHour(5))
	tests := []struct {
		name string
		do   func(e *entry)
		want string
	}{
		{"usage of one window adds up", func(e *entry) {
			e.add(plan, 3, at(0))
			e.add(plan, 4, at(time.Second))
		}, "[7 7 0 0]"},
		{"usage that is entered late counts in the later window", func(e *entry) {
			e.add(plan, 3, at(0))
			e.add(plan, 4, at(-time.Millisecond))
		}, "[7 7 0 0]"},
		{"a later window begins anew", func(e *entry) {
			e.add(plan, 3, at(0))
			e.add(plan, 4, at(time.Minute))
		}, "[4 7 0 0]"},
		{"after a step back of the clock usage counts in the later window", func(e *entry) {
			e.add(plan, 3, at(time.Minute))
			e.add(plan, 4, at(0))
			e.add(plan, 5, at(time.Second))
		}, "[12 12 0 0]"},
		{"nothing is added to a charge that was sent", func(e *entry) {
			e.add(plan, 3, at(0))
			e.charges[0].id = "sent"
			e.add(plan, 4, at(0))
			e.add(plan, 5, at(0))
		}, "[3 3 0 0] [9 9 0 0]"},
		{"a charge that was sent gives no credit", func(e *entry) {
			e.add(plan, 3, at(0))
			e.charges[0].id = "sent"
			if e.credit(plan, 2, at(0)) {
				e.charges = nil
			}
		}, "[3 3 0 0]"},
		{"no count goes over the largest limit", func(e *entry) {
			e.add(plan, ratelimit.MaxLimit, at(0))
			e.add(plan, 4, at(0))
		}, "[4294967295 4294967295 0 0]"},
		{"other windows are apart", func(e *entry) {
			e.add(plan, 3, at(0))
			e.add(other, 4, at(0))
			e.add(plan, 5, at(0))
		}, "[8 8 0 0] [4 0 0 0]"},
		{"a credit is for its window", func(e *entry) {
			e.add(plan, 3, at(0))
			e.add(plan, 4, at(time.Minute))
			e.credit(plan, 2, at(0))
		}, "[4 5 0 0]"},
		{"a credit of more than there is takes nothing", func(e *entry) {
			e.add(plan, 3, at(0))
			if e.credit(plan, 5, at(0)) {
				e.charges = nil
			}
		}, "[3 3 0 0]"},
		{"a credit for windows that have ended takes nothing", func(e *entry) {
			e.add(plan, 3, at(24*time.Hour))
			if e.credit(plan, 1, at(0)) {
				e.charges = nil
			}
		}, "[3 3 0 0]"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := new(entry)
			test.do(e)
			got := ""
			for _, c := range e.charges {
				got += fmt.Sprint(" ", c.units)
			}
			if got = got[1:]; got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestEntryIsBounded(t *testing.T) {
	e := new(entry)
	window := func(i int) *ratelimit.Plan {
		return ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.Quota{Limit: 1, Window: time.Duration(i+1) * time.Minute})
	}
	for i := range 100 {
		if ok := e.add(window(i), 1, began.UnixNano()); ok != (i < maxCharges) {
			t.Errorf("combination %d of windows found room: %v", i+1, ok)
		}
	}
}
