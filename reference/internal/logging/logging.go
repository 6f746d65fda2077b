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

// A Log is an open log. [Open] returns it. It is safe for concurrent use.
type Log struct {
	level  slog.LevelVar
	file   *file // nil: standard output
	sums   *sums
	buffer *buffer
	logger *slog.Logger
}

// Open opens the log, which goes to stdout unless c names a file.
func Open(c config.Log, stdout *os.File) (*Log, error) {
	l := new(Log)
	var to io.Writer = &lineWriter{to: stdout}
	if c.File != "" {
		f, err := openFile(c.File)
		if err != nil {
			return nil, err
		}
		l.file, to = f, f
	}
	newHandler := jsonHandler
	if c.Format == config.LogText || c.Format == config.LogAuto && c.File == "" && isatty.IsTerminal(stdout.Fd()) {
		newHandler = textHandler
	}
	l.buffer = newBuffer(to, func(lines uint64) []byte {
		var b bytes.Buffer
		slog.New(newHandler(&b, nil)).Warn("log lines were dropped because the log could not be written", slog.Uint64("lines", lines))
		return b.Bytes()
	})
	l.sums = new(sums)
	l.logger = slog.New(summing{newHandler(l.buffer, &l.level), l.sums})
	l.Apply(c)
	return l, nil
}

// Logger returns the logger.
func (l *Log) Logger() *slog.Logger { return l.logger }

// Apply sets the level and the bound of the file. The rest of c has no effect.
func (l *Log) Apply(c config.Log) {
	l.level.Set(c.Level)
	if l.file != nil {
		l.file.max.Store(int64(c.MaxSize) << 20)
	}
}

// Reopen opens the file again, for which another may have its name by now. If it
// cannot, the log goes on in the old one. Lines that were not written yet go to the file
// that is opened. Without a file it does nothing.
func (l *Log) Reopen() error {
	if l.file == nil {
		return nil
	}
	return l.file.reopen()
}

// Err returns an error while lines are being dropped.
func (l *Log) Err() error { return l.buffer.Err() }

// Dropped returns how many lines have been dropped since the log was opened.
func (l *Log) Dropped() uint64 { return l.buffer.Dropped() }

// Close waits for the lines that are not written yet, at most for a time.
func (l *Log) Close(atMost time.Duration) {
	l.sums.report()
	if l.buffer.Close(atMost) && l.file != nil {
		l.file.close()
	}
}

func textHandler(w io.Writer, level slog.Leveler) slog.Handler {
	return slog.NewTextHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: withUnit})
}

func jsonHandler(w io.Writer, level slog.Leveler) slog.Handler {
	return jsonLines{slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: withUnit}), w}
}

// withUnit formats durations as text such as "1.5s". JSON would have a number of
// nanoseconds without a unit.
func withUnit(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
