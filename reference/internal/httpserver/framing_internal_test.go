package httpserver

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// Whatever the lines, and wherever the reads cut them, a framing finds what a search in
// whole lines finds.
func TestFramingIsThatOfTheLines(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	parts := []string{
		"Transfer-Encoding:", "transfer-encoding", "TRANSFER-ENCODIN", "Content-Length:", "content-length", ":", " ", "\r", "x", "xx",
		"0123456789abcde", "\n", "\n", "\n", "\r\n", "\r\n", "\r\n",
	}
	for range 20_000 {
		var b strings.Builder
		for range random.IntN(12) {
			b.WriteString(parts[random.IntN(len(parts))])
		}
		octets := b.String()
		var f framing
		for rest := []byte(octets); len(rest) > 0; {
			n := 1 + random.IntN(min(len(rest), 24))
			f.scan(rest[:n])
			rest = rest[n:]
		}
		ambiguous, encoded := search(octets)
		if f.ambiguous.Load() != ambiguous || f.encoded.Load() != encoded {
			t.Fatalf("%q: ambiguous %v, encoded %v; want %v, %v", octets, f.ambiguous.Load(), f.encoded.Load(), ambiguous, encoded)
		}
	}
}

// search reports whether a section has both fields, and whether one has the first.
func search(octets string) (ambiguous, encoded bool) {
	chunked, measured := false, false
	for line := range strings.SplitSeq(strings.ToLower(octets), "\n") {
		switch {
		case line == "", line == "\r":
			chunked, measured = false, false
		case strings.HasPrefix(line, transferEncoding):
			chunked, encoded = true, true
		case strings.HasPrefix(line, contentLength):
			measured = true
		}
		ambiguous = ambiguous || chunked && measured
	}
	return ambiguous, encoded
}
