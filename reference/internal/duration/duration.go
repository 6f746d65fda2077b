// Package duration reads the durations of settings, flags and requests.
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
