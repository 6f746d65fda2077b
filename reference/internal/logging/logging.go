package logging

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/animalstore/gatehouse/reference/internal/config"
)

// A Log is the log of a server. [New] returns it. It is safe for concurrent use.
type Log struct {
	level  slog.LevelVar
	sums   *sums
	writer *writer
	logger *slog.Logger
}

// New returns the log on stdout.
func New(c config.Log, stdout *os.File) *Log {
	newHandler := jsonHandler
	if c.Format == config.LogText || c.Format == config.LogAuto && isatty.IsTerminal(stdout.Fd()) {
		newHandler = textHandler
	}
	l := &Log{sums: new(sums)}
	l.SetLevel(c.Level)
	l.writer = newWriter(stdout, func(lines int) []byte {
		var b bytes.Buffer
		slog.New(newHandler(&b, nil)).Warn("log lines were dropped because the log could not be written", slog.Int("lines", lines))
		return b.Bytes()
	})
	l.logger = slog.New(summing{newHandler(l.writer, &l.level), l.sums})
	return l
}

// Logger returns the logger.
func (l *Log) Logger() *slog.Logger { return l.logger }

// SetLevel changes the level below which lines are not written.
func (l *Log) SetLevel(level slog.Level) { l.level.Set(level) }

// Close waits for the lines that are not written yet, at most for a time.
func (l *Log) Close(atMost time.Duration) {
	l.sums.report()
	l.writer.Close(atMost)
}

func textHandler(w io.Writer, level slog.Leveler) slog.Handler {
	return slog.NewTextHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: withUnit})
}

func jsonHandler(w io.Writer, level slog.Leveler) slog.Handler {
	return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: withUnit})
}

// withUnit formats durations as text such as "1.5s". JSON would have a number of
// nanoseconds without a unit.
func withUnit(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
