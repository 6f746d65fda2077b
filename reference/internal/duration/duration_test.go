package duration_test

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/duration"
)

func TestParse(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"1d": day, "30d": 30 * day, "366d": 366 * day, "1d12h30m": day + 12*time.Hour + 30*time.Minute,
		"0d": 0, "0": 0, "90s": 90 * time.Second, "-1h": -time.Hour, "1.5h": 90 * time.Minute,
	} {
		if got, err := duration.Parse(text); err != nil || got != want {
			t.Errorf("Parse(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "1", "1d1", "1d-2h", "1h2d", "1.5d", "-1d", "1dd", "1 d", "200000d", "5000000000d", "a day"} {
		if got, err := duration.Parse(text); err == nil {
			t.Errorf("Parse(%q) = %v, want an error", text, got)
		}
	}
}
