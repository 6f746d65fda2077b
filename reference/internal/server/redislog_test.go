package server

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The Redis client writes to the log of the server, and an outage does not fill it.
func TestMessagesOfTheRedisClientAreLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := &redisLog{logger: slog.New(slog.NewTextHandler(&out, nil))}
		for range 90 {
			l.Printf(t.Context(), "failed to dial after %d attempts", 1)
			time.Sleep(time.Second)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 2 {
			t.Fatalf("90 messages in 90 seconds made %d lines, want 2:\n%s", len(lines), out.String())
		}
		for i, want := range []string{
			`level=WARN msg="Redis client" message="failed to dial after 1 attempts" dropped=0`,
			`level=WARN msg="Redis client" message="failed to dial after 1 attempts" dropped=59`,
		} {
			if !strings.HasSuffix(lines[i], want) {
				t.Errorf("line %d is %q, want %q at its end", i+1, lines[i], want)
			}
		}
	})
}
