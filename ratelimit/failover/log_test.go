package failover_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/failover"
)

// Without OnChange the log has one line when an outage begins, and one when it ends. A
// service with a wrong password for Redis would otherwise limit alone, or not at all, and
// nobody would know.
func TestOutageIsLogged(t *testing.T) {
	for _, mode := range []fallback{withLocal, alone} {
		var log bytes.Buffer
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		run(t, mode, failover.Options{}, func(r *rig) {
			r.shared.set(down)
			for range 10 {
				_, _ = r.Take(ctx, "a", daily, 1)
			}
			time.Sleep(time.Minute) // with probes
			r.shared.set(nil)
			time.Sleep(time.Minute)
			synctest.Wait()
		})
		slog.SetDefault(before)
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 2 ||
			!strings.HasSuffix(lines[0], `level=WARN msg="failover: the primary fails" error="connection refused"`) ||
			!strings.HasSuffix(lines[1], `level=INFO msg="failover: the primary answers again"`) {
			t.Errorf("%v: the log has\n%s\nwant a warning when the outage begins and a line when it ends", mode, &log)
		}
	}
}

// Requests that the journal has no room for are admitted and counted, and the first one of
// each outage is logged.
func TestFullJournalIsLogged(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	opts := failover.Options{JournalSize: 10, OnChange: func(error) {}}
	run(t, withLocal, opts, func(r *rig) {
		for _, lose := range []func(){r.lose, r.lose, r.losePart, r.losePart} {
			lose()
			for i := range 30 {
				if d := r.take(fmt.Sprint(i), daily); !d.Allowed() {
					r.Errorf("a request without room in the journal is %v", d.Outcome)
				}
			}
			r.regain()
		}
		if n := r.Stats().Lost; n < 80 || n > 100 {
			r.Errorf("%d requests were lost, want 120 but for those that 10 charges hold twice", n)
		}
	})
	if n := strings.Count(log.String(), `msg="failover: the journal is full; the primary will not count all requests that are admitted without it; raise Options.JournalSize" JournalSize=10`); n != 4 {
		t.Errorf("the log has %d warnings, want one for each of 4 outages:\n%s", n, &log)
	}
}
