package redislimit

import (
	"errors"
	"testing"

	"github.com/animalstore/gatehouse/ratelimit"
)

// Whatever a server says, a reply is read without a panic, and what is read of it
// makes sense.
func FuzzReply(f *testing.F) {
	window := "\x00\x00\x00\x3c\x69\xa4\x2b\x98\x00\x00\x00\x07"
	record := "\x01\x9c\xa9\x5e\x41\x02\x00\x03\x01\x69\xa4\x2b\x98\x00\x00\x00\x3c\x69\xa5\x7d\x18"
	f.Add("1772366430 250000 a\x0c"+window, int32(1), int32(0))
	f.Add("1772366430 250000 d\x00\x01\x00\x02\x21"+window+record, int32(5), int32(4))
	f.Add("1772366430 250000 g\x00\x00\x00\x02\x21"+window+record, int32(2), int32(1))
	f.Add("1772366430 250000 i", int32(1), int32(0))
	f.Add("1772366430 250000 e", int32(1), int32(0))
	f.Add("1772366430 250000 d\xff\xff\xff\xff\x00", int32(3), int32(2))
	f.Add("1772366430 2500000 a\x00", int32(1), int32(0))
	f.Add("-1 0 a\x00", int32(1), int32(0))
	f.Add("", int32(1), int32(0))
	plan := groupPlans[0]
	f.Fuzz(func(t *testing.T, text string, requests, place int32) {
		nanos, rest, err := cutTime(text)
		if err != nil {
			return
		}
		if requests < 1 || place < 0 || place >= requests {
			return
		}
		a := answer{nanos: nanos, requests: requests}
		left, err := a.read(rest)
		if err != nil {
			return
		}
		if len(a.bytes)+len(left) > len(rest) {
			t.Fatalf("%q was cut into %q and %q", rest, a.bytes, left)
		}
		for what, read := range map[string]func() (ratelimit.Decision, error){
			"decision": func() (ratelimit.Decision, error) { return a.decision(plan, 1, place) },
			"view":     func() (ratelimit.Decision, error) { return a.view(plan, 1) },
			"lease": func() (ratelimit.Decision, error) {
				g := &group{operation: operation{plan: plan, lease: &lease{own: 1, more: 9, refused: 1}}, answer: a}
				if err := g.readLease(); err != nil {
					return ratelimit.Decision{}, unavailable(err)
				}
				return g.leased()
			},
		} {
			d, err := read()
			switch {
			case err != nil && !errors.Is(err, ratelimit.ErrUnavailable):
				t.Errorf("%s of %q: %v does not wrap ErrUnavailable", what, text, err)
			case err == nil && (d.Outcome == ratelimit.Banned) != (d.BanEnds > 0):
				t.Errorf("%s of %q: %v until %d", what, text, d.Outcome, d.BanEnds)
			case err == nil && d.States[0].Remaining < 0:
				t.Errorf("%s of %q: %d remain", what, text, d.States[0].Remaining)
			}
		}
	})
}

// A reply that is not what the command asked for is an error, and no decision.
func TestRepliesThatCannotBeRead(t *testing.T) {
	const seven, thirteen = "\x07seven..", "\x0dthirteen....."
	plan := groupPlans[0]
	for _, text := range []string{
		"", "1772366430", "1772366430 250000 ", "1772366430 x a\x00", "1772366430 250000 q\x00",
		"1772366430 250000 a", "1772366430 250000 a\x01", "1772366430 250000 d\x00\x01\x00", "1772366430 250000 a\x00a",
		"1772366430 250000 s\x00",
	} {
		cmd := &command{groups: []*group{newGroup(operation{code: opTake, subject: "a", plan: plan, cost: 1})}}
		if err := cmd.read(text); err == nil {
			t.Errorf("%q was read as the reply about one subject", text)
		}
	}
	for _, text := range []string{"a\x00", "a" + seven, "a\x0c\x00\x00\x00\x00\x00\x00\x00\x0a\x00\x00\x00\x01", "q\x00", "s\x00\x00\x00\x00\x00"} {
		cmd := &command{groups: []*group{newGroup(operation{code: opLease, subject: "a", plan: plan, cost: 1, lease: &lease{more: 9}})}}
		if err := cmd.read("1772366430 250000 " + text); err == nil {
			t.Errorf("%q was read as the reply about a lease", text)
		}
	}
	const notMade = "s\x00\x00\x00\x00\x00"
	for _, text := range []string{"", "q", "e", "e\x00", "e\x03", "a\x00", "a\x00a\x01", "a\x00a\x00a", "ca\x00", notMade + "e"} {
		charges := []ratelimit.Charge{{Subject: "a", Plan: plan, Cost: 1}, {Subject: "b", Plan: plan, Cost: 1}}
		g := newGroup(operation{code: opTakeAll, subject: "a", takes: newTakes(charges)})
		cmd := &command{groups: []*group{g}}
		err := cmd.read("1772366430 250000 " + text)
		if err == nil && text == notMade+"e" {
			_, err = g.takes.answers[1].decision(plan, 1, 0)
		}
		if err == nil {
			t.Errorf("%q was read as the reply about two charges", text)
		}
	}
	for _, text := range []string{"i", "e", "a" + seven, "a" + thirteen, "d\x00\x00\x00\x00" + seven} {
		a := answer{requests: 1}
		_, err := a.read(text)
		must(t, err)
		_, err = a.decision(plan, 1, 0)
		_, err2 := a.view(plan, 1)
		_, err3 := a.refund(&ratelimit.Charge{Plan: plan, Cost: 1}, 1)
		for _, err := range []error{err, err2, err3} {
			if !errors.Is(err, ratelimit.ErrUnavailable) {
				t.Errorf("%q: got error %v, want one that wraps ErrUnavailable", text, err)
			}
		}
	}
}
