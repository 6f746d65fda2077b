package main

import (
	"fmt"
	"math"
	"strings"
)

// A target is what was aimed at.
type target struct {
	what string
	most float64
	unit string
	// value returns what was measured.
	value func(s *samples) (float64, bool)
	// scale is a peer's series and what it was on the machine for which the
	// target was set: on another one the target is that much higher or lower.
	scale    series
	measured float64
}

func of(name, unit string) func(s *samples) (float64, bool) {
	return func(s *samples) (float64, bool) { return s.median(name, 1, unit) }
}

// over is how many times as much a is as b.
func over(a, b series) func(s *samples) (float64, bool) {
	return func(s *samples) (float64, bool) {
		x, ok := s.median(a.name, a.cpus, a.unit)
		y, ok2 := s.median(b.name, b.cpus, b.unit)
		return x / y, ok && ok2
	}
}

// aboveBare is what the middleware takes beyond the bare handler.
func aboveBare(unit string) func(s *samples) (float64, bool) {
	return func(s *samples) (float64, bool) {
		all, ok := s.median("Middleware/case=allowed/peer="+ours, 1, unit)
		bare, ok2 := s.median("Middleware/case=allowed/peer=none", 1, unit)
		return all - bare, ok && ok2
	}
}

// ofFastestStack is what part the middleware takes of the fastest peer's two.
func ofFastestStack(s *samples) (float64, bool) {
	our, ok := s.median("Middleware/case=allowed/peer="+ours, 1, "ns/op")
	fastest := math.Inf(1)
	for _, peer := range inMemory {
		if v, found := s.median("Middleware/case=allowed/peer="+peer, 1, "ns/op"); found && peer != ours && peer != "none" {
			fastest = min(fastest, v)
		}
	}
	return our / fastest, ok && !math.IsInf(fastest, 1)
}

// targets were set on a machine on which sethvargo/go-limiter and throttled took
// what is given here.
func targets() []target {
	take := func(scene, peer string) string { return "Take/case=" + scene + "/peer=" + peer }
	redis := func(scene, peer string) series { return series{"Redis/case=" + scene + "/peer=" + peer, 2, "ns/op"} }
	sethvargo := func(scene string) series { return series{take(scene, "sethvargo"), 1, "ns/op"} }
	middleware := series{"Middleware/case=allowed/peer=throttled", 1, "ns/op"}
	return []target{
		{"a decision, hot key", 45, "ns", of(take("hot", ours), "ns/op"), sethvargo("hot"), 154},
		{"a decision, 10 thousand keys", 55, "ns", of(take("10k", ours), "ns/op"), sethvargo("10k"), 201},
		{"a decision, 1 million keys", 200, "ns", of(take("1M", ours), "ns/op"), sethvargo("1M"), 860},
		{"a decision, denied", 45, "ns", of(take("denied", ours), "ns/op"), sethvargo("denied"), 107},
		{"allocations of a decision", 0, "", of(take("1M", ours), "allocs/op"), series{}, 0},
		{"heap of a subject", 56, "bytes", of(take("1M", ours), "B/key"), series{}, 0},
		{"longest call with 10 million subjects, filling, in the quietest round", 1, "ms", func(s *samples) (float64, bool) {
			return s.least("Turnover/keys=10M/peer="+ours, 2, "fill-longest-ms")
		}, series{}, 0},
		{"the same, expiring", 1, "ms", func(s *samples) (float64, bool) {
			return s.least("Turnover/keys=10M/peer="+ours, 2, "expire-longest-ms")
		}, series{}, 0},
		{"middleware, beyond the bare handler", 250, "ns", aboveBare("ns/op"), middleware, 1452},
		{"its allocations", 2, "", aboveBare("allocs/op"), series{}, 0},
		{"middleware, of the fastest peer's two", 0.2, "", ofFastestStack, series{}, 0},
		{"the whole gate", 700, "ns", of("Gate/case=allowed/peer="+ours, "ns/op"), middleware, 1452},
		{"its allocations", 8, "", of("Gate/case=allowed/peer="+ours, "allocs/op"), series{}, 0},
		{"Redis, 10 thousand keys, one client, of EVALSHA `return 1`", 1.2, "", over(redis("10k/clients=1", ours), redis("10k/clients=1", "evalsha")), series{}, 0},
		{"Redis, hot key, 16 in parallel, of EVALSHA `return 1`", 1.0 / 3, "", over(redis("hot/clients=16", ours), redis("hot/clients=16", "evalsha")), series{}, 0},
		{"Redis, 10 thousand keys, 16 in parallel, of EVALSHA `return 1`", 1.0 / 3, "", over(redis("10k/clients=16", ours), redis("10k/clients=16", "evalsha")), series{}, 0},
		{"Redis, hot key, 16 in parallel, of redis_rate", 0.1, "", over(redis("hot/clients=16", ours), redis("hot/clients=16", "redis_rate")), series{}, 0},
	}
}

func (s *samples) writeTargets(b *strings.Builder) {
	b.WriteString("\n### Targets\n\nThe targets for times were set on a machine on which sethvargo/go-limiter takes 154, 201, 860 and 107 ns for the four cases, and two middlewares of throttled take 1452 ns. The column \"here\" scales each target by the times of these limiters on this machine.\n\n| at most | target | here | measured | |\n|---|---:|---:|---:|---|\n")
	for _, t := range targets() {
		v, ok := t.value(s)
		if !ok {
			continue
		}
		most := t.most
		if here, ok := s.median(t.scale.name, t.scale.cpus, t.scale.unit); ok {
			most *= here / t.measured
		}
		verdict := "met"
		switch missed := fmt.Sprintf("%.0f", 100*(v/most-1)); {
		case v <= most || missed == "0":
		case most == 0:
			verdict = "missed"
		default:
			verdict = "missed by " + missed + " %"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", t.what, quantity(t.most, t.unit), quantity(most, t.unit), quantity(v, t.unit), verdict)
	}
}

func quantity(v float64, unit string) string { return strings.TrimSpace(number(v) + " " + unit) }
