package logging

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/reference/internal/config"
)

var must = testcheck.NoError

func TestLevelAndFormat(t *testing.T) {
	for _, tt := range []struct {
		c    config.Log
		want string
	}{
		{config.Log{Format: config.LogAuto}, `"level":"INFO","msg":"two","wait":"5s"`},
		{config.Log{Format: config.LogJSON, Level: slog.LevelDebug}, `"level":"DEBUG","msg":"one"`},
		{config.Log{Format: config.LogText}, `level=INFO msg=two wait=5s`},
	} {
		to, err := os.Create(filepath.Join(t.TempDir(), "log"))
		must(t, err)
		l := New(tt.c, to)
		l.Logger().Debug("one")
		l.Logger().Info("two", slog.Duration("wait", 5*time.Second))
		l.SetLevel(slog.LevelWarn)
		l.Logger().Info("three")
		l.SetLevel(tt.c.Level)
		l.Logger().Info("four")
		for range 4 { // the end of the log has the sums
			l.Logger().Info("request", slog.Int("status", 429), slog.String("network", "192.0.2.1/32"))
		}
		l.Close(time.Minute)
		must(t, to.Close())
		text, err := os.ReadFile(to.Name())
		must(t, err)
		got := string(text)
		if !strings.Contains(got, tt.want) || !strings.Contains(got, "four") || strings.Contains(got, "three") {
			t.Errorf("%+v: the log is\n%s\nwant %s in it, and four, but not three", tt.c, got, tt.want)
		}
		if debug := strings.Contains(got, "one"); debug != (tt.c.Level == slog.LevelDebug) {
			t.Errorf("%+v: the log has the line of level debug: %v", tt.c, debug)
		}
		if strings.Count(got, "192.0.2.1/32") != 2 || !strings.HasSuffix(got, "count=3\n") && !strings.HasSuffix(got, `"count":3}`+"\n") {
			t.Errorf("%+v: the log of four denials is\n%s\nwant one line, and one that counts three", tt.c, got)
		}
	}
}
