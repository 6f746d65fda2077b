package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// During an outage the circuit opens again after each probe.
func TestCircuitLogRepeatsOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		log := &circuitLog{logger: slog.New(slog.NewTextHandler(&b, nil)), mode: "local"}
		lines := func(part string) int { return strings.Count(b.String(), part) }
		gone, slow := errors.New("gone"), context.DeadlineExceeded
		outage := func(cause error) {
			log.failed(cause) // the probe at the start
			for range 30 {    // two minutes and a half
				log.changed(cause)
				time.Sleep(5 * time.Second)
			}
		}
		outage(gone)
		if got := lines("Redis cannot be used"); got != 3 {
			t.Errorf("%d lines in an outage of 150 seconds, want one each minute", got)
		}
		log.changed(slow)
		if got := lines("Redis cannot be used"); got != 4 {
			t.Errorf("%d lines after another fault, want one more, at once", got)
		}
		log.changed(nil)
		log.changed(slow)
		if again, failed := lines("Redis answers again"), lines("Redis cannot be used"); again != 1 || failed != 5 {
			t.Errorf("%d and %d lines after Redis answered and failed again, want one each, at once", again, failed)
		}
	})
}
