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
}

var (
	inMemory = []string{ours, "sethvargo", "xtime", "throttled", "httprate", "ulule", "tollbooth", "none"}
	inRedis  = []string{ours, "ulule", "redis_rate", "throttled", "evalsha", "ping"}
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

// columns returns a column for each of the units of a benchmark.
func columns(name string, cpus int, units ...[2]string) (c []column) {
	for _, u := range units {
		c = append(c, column{head: u[0], name: name, cpus: cpus, unit: u[1], ratio: u[1] == "ns/op"})
	}
	return c
}

// tables returns all tables, in Markdown.
func (s *samples) tables() string {
	var b strings.Builder
	s.writeHeader(&b)
	s.writeTake(&b)
	s.writeSmooth(&b)
	s.writePairs(&b)
	s.writeMillion(&b)
	s.writeMiddleware(&b)
	s.writeParallel(&b)
	s.writeRedis(&b)
	s.section(&b, "Lower bounds of a decision",
		"Nanoseconds to read a clock (time.Now, time.Since), to hash a key of 45 bytes (hash), to write such a key into a buffer (key), and to read memory that is not in a cache (miss).",
		[]string{"time.Now", "time.Since", "hash", "key", "miss"}, columns("Floor/of=%s", 1, [2]string{"ns", "ns/op"}))
	s.writeTargets(&b)
	return strings.TrimSpace(b.String()) + "\n"
}

func (s *samples) writeTake(b *strings.Builder) {
	var c []column
	for _, scene := range [][2]string{{"hot key", "hot"}, {"10 thousand keys", "10k"}, {"1 million keys", "1M"}, {"denied", "denied"}} {
		c = append(c, columns("Take/case="+scene[1]+"/peer=%s", 1, [2]string{scene[0], "ns/op"})...)
	}
	c = append(c, columns("Take/case=hot/peer=%s", 1, [2]string{"allocations", "allocs/op"})...)
	s.section(b, "Decisions in memory",
		"Nanoseconds for a decision about both quotas, on one processor; in brackets, the multiple of gatehouse's time. The row (nothing) is the benchmark's own loop.", inMemory, c)
	if banned, ok := s.median("Take/case=banned/peer="+ours, 1, "ns/op"); ok {
		fmt.Fprintf(b, "\nGatehouse takes %s ns for a request during a ban.\n", number(banned))
	}
}

func (s *samples) writeSmooth(b *strings.Builder) {
	var c []column
	for _, scene := range [][2]string{{"hot key", "hot"}, {"10 thousand keys", "10k"}, {"denied", "denied"}} {
		c = append(c, columns("Smooth/case="+scene[1]+"/peer=%s", 1, [2]string{scene[0], "ns/op"})...)
	}
	for _, clients := range []string{"1", "16"} {
		c = append(c, column{
			head: "Redis, " + clients + " (µs)", name: "SmoothRedis/clients=" + clients + "/peer=%s",
			cpus: 2, unit: "ns/op", per: 1000, ratio: true,
		})
	}
	s.section(b, "Smooth quotas",
		"Nanoseconds for a decision about one smooth quota, by a token bucket of the peers, and by a fixed window of gatehouse. Microseconds in Redis, with 10 thousand keys, by one client that waits for each answer, and by 16 in parallel for each processor.",
		[]string{ours, "fixed", "sethvargo", "xtime", "throttled", "redis_rate"}, c)
}

func (s *samples) writePairs(b *strings.Builder) {
	var c []column
	for _, scene := range [][2]string{{"hot key", "hot"}, {"10 thousand keys", "10k"}, {"denied", "denied"}} {
		c = append(c, columns("Pairs/case="+scene[1]+"/peer=%s", 1, [2]string{scene[0], "ns/op"})...)
	}
	for _, scene := range [][2]string{{"", "10k"}, {"denied, ", "denied"}} {
		for _, clients := range []string{"1", "16"} {
			c = append(c, column{
				head: "Redis, " + scene[0] + clients + " (µs)", name: "PairsRedis/case=" + scene[1] + "/clients=" + clients + "/peer=%s",
				cpus: 2, unit: "ns/op", per: 1000, ratio: true,
			})
		}
	}
	s.section(b, "Two subjects",
		"The same for two subjects at once, of which both are charged or none, with two quotas each. All requests share the second one.",
		[]string{ours, "pair"}, c)
}

func (s *samples) writeMillion(b *strings.Builder) {
	c := columns("Take/case=1M/peer=%s", 1, [2]string{"bytes a key", "B/key"}, [2]string{"full collection", "gc-ms"})
	c = append(c, columns("Turnover/keys=1M/peer=%s", 2,
		[2]string{"longest call, filling", "fill-longest-ms"}, [2]string{"longest call, expiring", "expire-longest-ms"})...)
	s.section(b, "A million keys",
		"Bytes of heap per key, including the key itself where the engine keeps it. Milliseconds of one full garbage collection while the engine holds a million keys, and of the longest single call while the keys are added and while they expire, with a second processor for background sweeps. An engine that never forgets a key has no value in the last column.", inMemory, c)
	s.writeLong(b)
}

func (s *samples) writeMiddleware(b *strings.Builder) {
	units := func(kind, scene string) []column {
		return columns(kind+"/case="+scene+"/peer=%s", 1, [2]string{scene, "ns/op"}, [2]string{"allocations", "allocs/op"})
	}
	s.section(b, "Middleware",
		"Nanoseconds and allocations for a request through one middleware of gatehouse with both quotas, or through two of a peer, on one processor.",
		inMemory, append(units("Middleware", "allowed"), units("Middleware", "denied")...))
	s.section(b, "One line",
		"limit.ByIP of gatehouse and LimitByIP of httprate, with one quota.",
		inMemory, append(units("ByIP", "allowed"), units("ByIP", "denied")...))
	s.section(b, "The whole gate",
		"Bearer token, key verified from the cache, both quotas, header fields, principal in the context.",
		inMemory, append(units("Gate", "allowed"), units("Gate", "denied")...))
}

func (s *samples) writeParallel(b *strings.Builder) {
	var c []column
	for _, scene := range [][2]string{{"hot key", "hot"}, {"10 thousand keys", "10k"}} {
		for cpus := 1; cpus <= 2; cpus++ {
			c = append(c, columns("Parallel/case="+scene[1]+"/peer=%s", cpus, [2]string{fmt.Sprintf("%s, on %d", scene[0], cpus), "ns/op"})...)
		}
	}
	s.section(b, "On two processors", "Nanoseconds from one decision to the next, of all processors together. The last row is the lower bound for a hot key: hash the key, read one word, and swap it unless another processor has.", append(inMemory[:len(inMemory):len(inMemory)], "word"), c)
}

func (s *samples) writeRedis(b *strings.Builder) {
	var c []column
	for _, scene := range [][2]string{{"hot key", "hot"}, {"10 thousand keys", "10k"}} {
		for _, clients := range []string{"1", "16"} {
			c = append(c, column{
				head: scene[0] + ", " + clients, name: "Redis/case=" + scene[1] + "/clients=" + clients + "/peer=%s",
				cpus: 2, unit: "ns/op", per: 1000, ratio: true,
			})
		}
	}
	c = append(c, columns("Redis/case=10k/clients=1/peer=%s", 2, [2]string{"round trips", "round-trips"}, [2]string{"allocations", "allocs/op"})...)
	c = append(c, columns("Redis/case=hot/clients=16/peer=%s", 2, [2]string{"failed % (hot key, 16)", "failed-%"})...)
	s.section(b, "Redis",
		"Microseconds from one decision to the next over the loopback interface, with the server on the same two processors: one client that waits for each answer, and 16 in parallel for each processor. Round trips and allocations are those of one client.", inRedis, c)
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

// section writes a table, unless nothing of it was measured. A peer of which
// nothing was measured has no row.
func (s *samples) section(b *strings.Builder, title, text string, peers []string, columns []column) {
	var rows strings.Builder
	for _, peer := range peers {
		cells, any := "", false
		for _, c := range columns {
			cell, ok := s.cell(c, peer)
			cells += " " + cell + " |"
			any = any || ok
		}
		if !any {
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
	b.WriteString("\n### " + title + "\n\n" + text + "\n\n| |")
	for _, c := range columns {
		b.WriteString(" " + c.head + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(columns)) + "\n" + rows.String())
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
