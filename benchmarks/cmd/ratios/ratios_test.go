package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const printed = `
date: 2026-01-02
cpu: Some Processor
BenchmarkTake/case=hot/peer=gatehouse         	10000000	        40.00 ns/op	       0 B/op	       0 allocs/op
BenchmarkTake/case=hot/peer=sethvargo         	 1000000	       308.0 ns/op	       0 B/op	       0 allocs/op
--- SKIP: BenchmarkFlood
    takes long
BenchmarkTake/case=hot/peer=gatehouse         	10000000	        60.00 ns/op	       0 B/op	       0 allocs/op
BenchmarkTake/case=hot/peer=sethvargo         	 1000000	       308.0 ns/op	       0 B/op	       0 allocs/op
BenchmarkTake/case=hot/peer=gatehouse         	10000000	        50.00 ns/op	       0 B/op	       0 allocs/op
BenchmarkTake/case=hot/peer=sethvargo         	 1000000	       308.0 ns/op	       0 B/op	       0 allocs/op
BenchmarkTake/case=1M/peer=gatehouse          	 1000000	       300.0 ns/op	        60.00 B/key	       0 allocs/op
BenchmarkParallel/case=hot/peer=ulule-2       	 1000000	       500.0 ns/op
PASS
`

const wanted = `Medians of 3 rounds of 2026-01-02 on Some Processor.

### Decisions in memory

Nanoseconds for a decision about both quotas, on one processor; in brackets, the multiple of gatehouse's time. The row (nothing) is the benchmark's own loop.

| | hot key | 10 thousand keys | 1 million keys | denied | allocations |
|---|---:|---:|---:|---:|---:|
| **gatehouse** | 50 |  | 300 |  | 0 |
| sethvargo/go-limiter | 308 (6.16×) |  |  |  | 0 |

### A million keys

Bytes of heap per key, including the key itself where the engine keeps it. Milliseconds of one full garbage collection while the engine holds a million keys, and of the longest single call while the keys are added and while they expire, with a second processor for background sweeps. An engine that never forgets a key has no value in the last column.

| | bytes a key | full collection | longest call, filling | longest call, expiring |
|---|---:|---:|---:|---:|
| **gatehouse** | 60 |  |  |  |

### On two processors

Nanoseconds from one decision to the next, of all processors together. The last row is the lower bound for a hot key: hash the key, read one word, and swap it unless another processor has.

| | hot key | 10 thousand keys |
|---|---:|---:|
| ulule/limiter | 500 |  |
`

func TestTables(t *testing.T) {
	s, err := parse(strings.NewReader(printed))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted, s.tables()); diff != "" {
		t.Errorf("tables (-want +got):\n%s", diff)
	}
}
