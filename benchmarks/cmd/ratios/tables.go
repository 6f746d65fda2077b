package main

import (
	"fmt"
	"math"
	"strings"
)

const ours = "gatehouse"

// label is what a peer is called in a table.
var label = map[string]string{
	ours:         "**gatehouse**",
	"sethvargo":  "sethvargo/go-limiter",
	"xtime":      "x/time/rate in a sync.Map",
	"throttled":  "throttled",
	"httprate":   "httprate",
	"ulule":      "ulule/limiter",
	"tollbooth":  "tollbooth",
	"redis_rate": "redis_rate",
	"fixed":      "gatehouse, a fixed window",
	"pair":       "gatehouse, two subjects",
	"none":       "(nothing)",
	"word":       "(one word, read and swapped)",
	"ping":       "(PING)",
	"evalsha":    "(EVALSHA of `return 1`)",
	"floor":      "(EVALSHA of GET and SET EX)",
}

var (
	inMemory = []string{ours, "sethvargo", "xtime", "throttled", "httprate", "ulule", "tollbooth", "none"}
	inRedis  = []string{ours, "ulule", "redis_rate", "throttled", "floor", "evalsha", "ping"}
)

// A column is a series of each peer. The name has a %s for the peer.
type column struct {
	head  string
	name  string
	cpus  int
	unit  string
	per   float64 // what one unit of the table is in those of the series; 0: 1
	ratio bool    // with how many times as much it is as ours
}

// A table is what one section of the document shows.
type table struct {
	title, text string
	peers       []string
	columns     []column
	after       func(*samples, *strings.Builder) // what follows it, or nil
}

// ns is a column of times, with their ratios.
func ns(head, name string) column {
	return column{head: head, name: name, cpus: 1, unit: "ns/op", ratio: true}
}

// micros is a column of times of Redis.
func micros(head, name string) column {
	return column{head: head, name: name, cpus: 2, unit: "ns/op", per: 1000, ratio: true}
}

// value is a column of something else, measured on cpus processors.
func value(head, name string, cpus int, unit string) column {
	return column{head: head, name: name, cpus: cpus, unit: unit}
}

// on returns the column for a number of processors.
func (c column) on(cpus int) column {
	c.cpus = cpus
	return c
}

// stack returns the columns of a benchmark of handlers.
func stack(name string) (c []column) {
	for _, scene := range []string{"allowed", "denied"} {
		series := name + "/case=" + scene + "/peer=%s"
		c = append(c, ns(scene, series), value("allocations", series, 1, "allocs/op"))
	}
	return c
}

var all = []table{
	{
		title: "Decisions in memory",
		text:  "Nanoseconds for a decision about both quotas, on one processor; in brackets, the multiple of gatehouse's time. The row (nothing) is the benchmark's own loop.",
		peers: inMemory,
		columns: []column{
			ns("hot key", "Take/case=hot/peer=%s"), ns("10 thousand keys", "Take/case=10k/peer=%s"),
			ns("1 million keys", "Take/case=1M/peer=%s"), ns("denied", "Take/case=denied/peer=%s"), ns("denied, 10 thousand keys", "Take/case=denied10k/peer=%s"),
			value("allocations", "Take/case=hot/peer=%s", 1, "allocs/op"),
		},
		after: (*samples).writeBanned,
	},
	{
		title: "The first request of a window",
		text:  "The same for a request of a key that has sent none in the window, which is a second here. Most callers of most services send less than one request a window.",
		peers: inMemory,
		columns: []column{
			ns("10 thousand keys", "First/case=10k/peer=%s"), ns("1 million keys", "First/case=1M/peer=%s"),
		},
	},
	{
		title: "Smooth quotas",
		text:  "Nanoseconds for a decision about one smooth quota, by a token bucket of the peers, and by a fixed window of gatehouse. Microseconds in Redis, with 10 thousand keys, by one client that waits for each answer, and by 16 in parallel for each processor.",
		peers: []string{ours, "fixed", "sethvargo", "xtime", "throttled", "redis_rate"},
		columns: []column{
			ns("hot key", "Smooth/case=hot/peer=%s"), ns("10 thousand keys", "Smooth/case=10k/peer=%s"), ns("denied", "Smooth/case=denied/peer=%s"),
			micros("Redis, 1 (µs)", "SmoothRedis/clients=1/peer=%s"), micros("Redis, 16 (µs)", "SmoothRedis/clients=16/peer=%s"),
		},
	},
	{
		title: "Two subjects",
		text:  "The same for two subjects at once, of which both are charged or none, with two quotas each. All requests share the second one.",
		peers: []string{ours, "pair"},
		columns: []column{
			ns("hot key", "Pairs/case=hot/peer=%s"), ns("10 thousand keys", "Pairs/case=10k/peer=%s"), ns("denied", "Pairs/case=denied/peer=%s"),
			micros("Redis, 1 (µs)", "PairsRedis/case=10k/clients=1/peer=%s"), micros("Redis, 16 (µs)", "PairsRedis/case=10k/clients=16/peer=%s"),
			micros("Redis, denied, 1 (µs)", "PairsRedis/case=denied/clients=1/peer=%s"), micros("Redis, denied, 16 (µs)", "PairsRedis/case=denied/clients=16/peer=%s"),
		},
	},
	{
		title: "A million keys",
		text:  "Bytes of heap per key, including the key itself where the engine keeps it. Milliseconds of one full garbage collection while the engine holds a million keys, and of the longest single call while the keys are added and while they expire, with a second processor for background sweeps. An engine that never forgets a key has no value in the last column.",
		peers: inMemory,
		columns: []column{
			value("bytes a key", "Take/case=1M/peer=%s", 1, "B/key"), value("full collection", "Take/case=1M/peer=%s", 1, "gc-ms"),
			value("longest call, filling", "Turnover/keys=1M/peer=%s", 2, "fill-longest-ms"), value("longest call, expiring", "Turnover/keys=1M/peer=%s", 2, "expire-longest-ms"),
		},
		after: (*samples).writeLong,
	},
	{
		title:   "Middleware",
		text:    "Nanoseconds and allocations for a request through one middleware of gatehouse with both quotas, or through two of a peer, on one processor.",
		peers:   inMemory,
		columns: stack("Middleware"),
	},
	{
		title:   "The whole gate",
		text:    "Bearer token, key verified from the cache, both quotas, header fields, principal in the context.",
		peers:   inMemory,
		columns: stack("Gate"),
	},
	{
		title: "On two processors",
		text:  "Nanoseconds from one decision to the next, of all processors together. The last row is the lower bound for a hot key: hash the key, read one word, and swap it unless another processor has.",
		peers: append(inMemory[:len(inMemory):len(inMemory)], "word"),
		columns: []column{
			ns("hot key", "Parallel/case=hot/peer=%s").on(2), ns("10 thousand keys", "Parallel/case=10k/peer=%s").on(2),
		},
	},
	{
		title: "Redis",
		text:  "Microseconds from one decision to the next over the loopback interface, with the server on the same two processors: one client that waits for each answer, and 16 in parallel for each processor. Round trips and allocations are counted for one client.",
		peers: inRedis,
		columns: []column{
			micros("hot key, 1", "Redis/case=hot/clients=1/peer=%s"), micros("hot key, 16", "Redis/case=hot/clients=16/peer=%s"),
			micros("10 thousand keys, 1", "Redis/case=10k/clients=1/peer=%s"), micros("10 thousand keys, 16", "Redis/case=10k/clients=16/peer=%s"),
			value("round trips", "Redis/case=10k/clients=1/peer=%s", 2, "round-trips"), value("allocations", "Redis/case=10k/clients=1/peer=%s", 2, "allocs/op"),
			value("failed % (hot key, 16)", "Redis/case=hot/clients=16/peer=%s", 2, "failed-%"),
		},
	},
}

// tables returns all tables, in Markdown.
func (s *samples) tables() string {
	var b strings.Builder
	s.writeHeader(&b)
	for _, t := range all {
		s.writeTable(&b, t)
		if t.after != nil {
			t.after(s, &b)
		}
	}
	return strings.TrimSpace(b.String()) + "\n"
}

func (s *samples) writeBanned(b *strings.Builder) {
	if banned, ok := s.median("Take/case=banned/peer="+ours, 1, "ns/op"); ok {
		fmt.Fprintf(b, "\nGatehouse takes %s ns for a request during a ban.\n", number(banned))
	}
}

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

func (s *samples) writeHeader(b *strings.Builder) {
	fmt.Fprintf(b, "Medians of %d rounds", s.rounds())
	for _, h := range []struct{ before, key string }{
		{" of ", "date"}, {" on ", "cpu"}, {", ", "go"}, {", ", "goos"}, {"/", "goarch"}, {". ", "redis"}, {". Peers: ", "peers"},
	} {
		if v := s.header[h.key]; v != "" {
			b.WriteString(h.before + v)
		}
	}
	b.WriteString(".\n")
}

// writeTable writes a table, unless nothing of it was measured. A peer of which
// nothing was measured has no row.
func (s *samples) writeTable(b *strings.Builder, t table) {
	var rows strings.Builder
	for _, peer := range t.peers {
		cells, measured := "", false
		for _, c := range t.columns {
			cell, ok := s.cell(c, peer)
			cells += " " + cell + " |"
			measured = measured || ok
		}
		if !measured {
			continue
		}
		name := label[peer]
		if name == "" {
			name = peer
		}
		rows.WriteString("| " + name + " |" + cells + "\n")
	}
	if rows.Len() == 0 {
		return
	}
	b.WriteString("\n### " + t.title + "\n\n" + t.text + "\n\n| |")
	for _, c := range t.columns {
		b.WriteString(" " + c.head + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(t.columns)) + "\n" + rows.String())
}

// cell returns what a table says, and whether it was measured.
func (s *samples) cell(c column, peer string) (string, bool) {
	v, ok := s.median(fmt.Sprintf(c.name, peer), c.cpus, c.unit)
	if !ok {
		return "", false
	}
	text := number(v / max(c.per, 1))
	our, ok := s.median(fmt.Sprintf(c.name, ours), c.cpus, c.unit)
	if c.ratio && ok && our > 0 && peer != ours && peer != "none" && peer != "word" {
		text += fmt.Sprintf(" (%s×)", number(v/our))
	}
	return text, true
}

// number writes a number with three digits, or all before the point; a whole one
// without a point.
func number(v float64) string {
	switch {
	case v >= 99.95 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	case v >= 9.995:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}
