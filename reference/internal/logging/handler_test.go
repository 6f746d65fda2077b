package logging

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestDurationsInTheLogHaveUnits(t *testing.T) {
	for want, newHandler := range map[string]func(*bytes.Buffer) slog.Handler{
		`"timeout":"5s","in":{"a":"1.5ms"}`: func(b *bytes.Buffer) slog.Handler { return jsonHandler(b, nil) },
		`timeout=5s in.a=1.5ms`:             func(b *bytes.Buffer) slog.Handler { return textHandler(b, nil) },
	} {
		var b bytes.Buffer
		slog.New(newHandler(&b)).Info("m", slog.Duration("timeout", 5*time.Second), slog.Group("in", slog.Any("a", 1500*time.Microsecond)))
		if !strings.Contains(b.String(), want) {
			t.Errorf("the line is %s, want %s in it", &b, want)
		}
	}
}
