package benchmarks

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"
)

// long skips a benchmark that takes its time.
func long(b *testing.B) {
	b.Helper()
	if os.Getenv("GATEHOUSE_LONG") != "1" {
		skip(b, "takes long; GATEHOUSE_LONG=1 runs it")
	}
}

// skip skips a benchmark and prints why, which testing does for tests alone.
func skip(b *testing.B, why string) {
	b.Helper()
	fmt.Printf("--- SKIP: %s\n    %s\n", b.Name(), why)
	b.SkipNow()
}

// trial reports whether the benchmarks run once, to see that they do. Then keys
// are a twentieth of what the names say.
func trial() bool { return flag.Lookup("test.benchtime").Value.String() == "1x" }

// scaled returns the number of keys to be used in place of n.
func scaled[T int | time.Duration](n T) T {
	if trial() && n > 1 {
		return n / 20
	}
	return n
}

// rest leaves the processor to others for a moment, before the clock starts.
// Linux takes it away from a real-time process (chrt -f) for 50 ms when that has
// left less than 5 % of a second to others, which is longer than anything that is
// measured here.
func rest() {
	if !trial() {
		time.Sleep(60 * time.Millisecond)
	}
}

// must returns v. It panics if what a test sets up fails.
func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}
