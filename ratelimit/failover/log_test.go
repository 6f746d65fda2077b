package failover_test

import (
	"bytes"
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
	for mode, name := range map[failover.Mode]string{failover.FailLocal: "local", failover.FailOpen: "open", failover.FailClosed: "closed"} {
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
			!strings.HasSuffix(lines[0], `level=WARN msg="failover: the primary fails" mode=`+name+` error="connection refused"`) ||
			!strings.HasSuffix(lines[1], `level=INFO msg="failover: the primary answers again" mode=`+name) {
			t.Errorf("mode %v: the log has\n%s\nwant a warning when the outage begins and a line when it ends", mode, &log)
		}
	}
}
