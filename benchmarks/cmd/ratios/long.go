package main

import (
	"fmt"
	"strings"
)

// writeLong writes what is only measured on request.
func (s *samples) writeLong(b *strings.Builder) {
	say := func(name string, cpus int, unit string) string {
		median, _ := s.median(name, cpus, unit)
		least, _ := s.least(name, cpus, unit)
		return fmt.Sprintf("%s (%s)", number(median), number(least))
	}
	const turnover = "Turnover/keys=10M/peer="
	if _, ok := s.median(turnover+ours, 2, "fill-longest-ms"); ok {
		b.WriteString("\nWith ten million subjects, milliseconds of the longest call, and how many of ten million calls took over 1 ms: the median of the rounds, and in brackets the lowest round. The row (nothing) has a call that only waits, as often and for as long: it shows the delays of the machine itself.\n\n| | longest call, filling | over 1 ms | longest call, expiring | over 1 ms |\n|---|---:|---:|---:|---:|\n")
		for _, peer := range []string{ours, "none"} {
			b.WriteString("| " + label[peer] + " |")
			for _, unit := range []string{"fill-longest-ms", "fill-over-1ms", "expire-longest-ms", "expire-over-1ms"} {
				b.WriteString(" " + say(turnover+peer, 2, unit) + " |")
			}
			b.WriteString("\n")
		}
	}
	flood := func(unit string) float64 { v, _ := s.median("Flood", 1, unit); return v }
	if ns, ok := s.median("Flood", 1, "ns/op"); ok {
		fmt.Fprintf(b, "\nA flood of 50 million fresh subjects through a table of one million: %s ns each, %s evicted, %s refused, the longest call %s ms. No subject that was banned, limited, or had used half of a quota was forgotten.\n",
			number(ns), number(flood("evicted")), number(flood("refused")), say("Flood", 1, "flood-longest-ms"))
	}
}
