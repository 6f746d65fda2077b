package server

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/config"
)

// watchPeriod is the time between two looks at the settings file and the certificate.
const watchPeriod = time.Second

// A reloader reads the settings again on SIGHUP, and when their file or the certificate changes,
// and applies them. If that fails, the settings and the certificate in force stay as they are.
type reloader struct {
	source *config.Source
	hangUp <-chan os.Signal
	logger *slog.Logger
	apply  func(*config.Config) error // applies all settings, or none if it returns an error

	setLevel func(slog.Level) // of the log

	// These are used by run alone.
	current *config.Config // in force
	wanted  *config.Config // the last ones that were read without a mistake

	certificate string // of wanted, when it was last read; see readCertificate

	mu     sync.Mutex
	status reloadStatus
}

// A reloadStatus says how often the settings were read again, and how the last time ended.
type reloadStatus struct {
	Applied int64
	Refused int64    // because of a mistake
	Error   string   // why the last reload was refused; "": it was not
	Restart []string // settings that take effect after a restart
}

// start runs the reloader until the returned function is called.
func (r *reloader) start(ctx context.Context) (stop func()) {
	if r.source == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { r.run(ctx) })
	return func() {
		cancel()
		wg.Wait()
	}
}

func (r *reloader) run(ctx context.Context) {
	look := time.NewTicker(watchPeriod)
	defer look.Stop()
	last := r.certificate // at the last look; the files are replaced one after the other
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.hangUp:
			r.reload("SIGHUP")
		case <-look.C:
			if r.source.Changed() {
				r.reload("the file has changed")
			}
			now, _ := readCertificate(r.wanted)
			if now == last && now != r.certificate {
				r.certificate = now
				r.reload("the certificate has changed")
			}
			last = now
		}
	}
}

// reload reads and applies the settings, and logs the result.
func (r *reloader) reload(cause string) {
	before := r.current
	applied, restart, err := r.try()
	about := []any{slog.String("cause", cause)}
	if file := r.source.File(); file != "" {
		about = append(about, slog.String("file", file))
	}
	if err != nil {
		r.count(nil, err)
		r.logger.Error("refused the settings; those in force stay", append(about, slog.String("error", inOneLine(err)))...)
		return
	}
	// At the lower of both levels, so that a change of the level itself is logged.
	r.setLevel(min(before.Log.Level, r.current.Log.Level))
	r.count(restart, nil)
	level := slog.LevelInfo
	if len(restart) > 0 {
		level = slog.LevelWarn
	}
	r.logger.Log(context.Background(), level, "reloaded the settings",
		append(about, slog.Any("changed", applied), slog.Any("need_restart", restart))...)
	r.setLevel(r.current.Log.Level)
}

// try returns the settings whose changes it has applied, and those that need a restart.
func (r *reloader) try() (applied, restart []string, err error) {
	next, err := r.source.Load()
	if err != nil {
		return nil, nil, err
	}
	if err := next.CheckOperations(api.Deprecatable(), api.Operations()); err != nil {
		return nil, nil, err
	}
	r.wanted = next
	if r.certificate, err = readCertificate(next); err != nil {
		return nil, nil, err
	}
	merged, err := r.current.After(next)
	if err != nil {
		return nil, nil, err
	}
	if err := r.apply(merged); err != nil {
		return nil, nil, err
	}
	applied, restart = r.current.Changes(next)
	r.current = merged
	return applied, restart, nil
}

func (r *reloader) count(restart []string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Error = ""
	if err != nil {
		r.status.Refused++
		r.status.Error = inOneLine(err)
		return
	}
	r.status.Applied++
	r.status.Restart = restart
}

// Status is safe for concurrent use.
func (r *reloader) Status() reloadStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// inOneLine returns the text of an error, which can have a line for each mistake, in one line.
func inOneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
