package engines

import (
	"strings"
	"testing"
)

const (
	inMemory    = "Decisions in memory"
	million     = "A million keys"
	overRedis   = "Redis"
	oneDecision = "one decision"
)

// A figure is a cell of a table in docs/BENCHMARKS.md.
type figure struct{ heading, row, column, unit string }

// costs are the figures of the page, in their order, by row.
var costs = map[string][]figure{
	"memory": {
		{inMemory, "gatehouse", "hot key", " ns"},
		{inMemory, "gatehouse", "1 million keys", " ns"},
		{million, "gatehouse", "bytes a key", " bytes"},
	},
	"redislimit": {
		{overRedis, "gatehouse", "hot key, 1", " µs"},
		{overRedis, "gatehouse", "hot key, 16", " µs"},
		{overRedis, "gatehouse", "round trips", " round trip"},
		{overRedis, "gatehouse", "allocations", " allocations"},
	},
}

// The costs are those of the benchmarks. When these are measured again, the page must
// change with them.
func TestCosts(t *testing.T) {
	page := tables(t, "ENGINES.md", "What they cost")[0]
	for name, figures := range costs {
		row := page[name]
		rest := row[oneDecision] + "; " + row["other costs"]
		for _, f := range figures {
			value, _, _ := strings.Cut(tables(t, "BENCHMARKS.md", f.heading)[0][f.row][f.column], " ")
			_, after, ok := strings.Cut(rest, value+f.unit)
			if value == "" || !ok {
				t.Errorf("%s: the page has %q, want next %q, as docs/BENCHMARKS.md has it under %q for %s", name, rest, value+f.unit, f.heading, f.row)
				continue
			}
			rest = after
		}
	}
}
