// Package duration reads and writes the durations of settings, flags and requests.
package duration

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Parse is [time.ParseDuration] with days of 24 hours before the other units: "30d" and
// "1d12h" are durations too.
func Parse(text string) (time.Duration, error) {
	days, rest, _ := strings.Cut(text, "d")
	if n, err := strconv.ParseUint(days, 10, 32); err == nil && len(days) < len(text) {
		return time.ParseDuration(fmt.Sprintf("%dh%s", 24*n, rest))
	}
	return time.ParseDuration(text)
}

// Format formats a duration without zero units: 24h and not 24h0m0s.
func Format(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
