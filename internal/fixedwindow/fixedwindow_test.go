package fixedwindow_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
)

func Example() {
	now := time.Date(2026, 1, 1, 12, 0, 59, 500_000_000, time.UTC)
	end := fixedwindow.End(now.UnixNano(), time.Minute)
	fmt.Println(time.Unix(end, 0).UTC().Format(time.TimeOnly))
	// Output: 12:01:00
}

func TestEnd(t *testing.T) {
	const second = int64(time.Second)
	for _, test := range []struct {
		now         int64
		length      time.Duration
		end, latest int64
	}{
		{0, time.Second, 1, 2},
		{second - 1, time.Second, 1, 2},
		{second, time.Second, 2, 3}, // a window ends at the first instant of the next
		{59*second + 1, time.Minute, 60, 120},
		{60 * second, time.Minute, 120, 180},
		{10 * second, 7 * time.Second, 14, 21},
		{1<<63 - 1, time.Second, 9223372037, 9223372038},
	} {
		if end := fixedwindow.End(test.now, test.length); end != test.end {
			t.Errorf("End(%d, %v) = %d, want %d", test.now, test.length, end, test.end)
		}
		if latest := fixedwindow.LatestEnd(test.now, test.length); latest != test.latest {
			t.Errorf("LatestEnd(%d, %v) = %d, want %d", test.now, test.length, latest, test.latest)
		}
	}
}

func TestSeconds(t *testing.T) {
	for _, test := range []struct{ t, down, up int64 }{
		{0, 0, 0}, {1, 0, 1}, {999_999_999, 0, 1}, {1_000_000_000, 1, 1}, {1_000_000_001, 1, 2},
	} {
		if down, up := fixedwindow.Seconds(test.t), fixedwindow.SecondsUp(test.t); down != test.down || up != test.up {
			t.Errorf("Seconds, SecondsUp(%d) = %d, %d, want %d, %d", test.t, down, up, test.down, test.up)
		}
	}
}
