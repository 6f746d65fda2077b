package cli

import (
	"context"
	"errors"
	"os"

	"github.com/mattn/go-isatty"
	"github.com/schollz/progressbar/v3"

	"github.com/animalstore/gatehouse/reference/internal/postgres"
)

// longWork calls do, whose context ends when the command is interrupted, so that do can delete
// what is not complete. Then the error says only that, unless the outcome is unknown. On a
// terminal, longWork shows what do reports to bar, until do returns.
func longWork(ctx context.Context, do func(ctx context.Context, bar *progress) error) error {
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	bar := &progress{}
	defer bar.end()
	err := do(ctx, bar)
	if err != nil && ctx.Err() != nil && !errors.Is(err, postgres.ErrUnknown) {
		return context.Cause(ctx)
	}
	return err
}

// A progress shows on standard error, if that is a terminal, how far long work is, and how long
// it will still take. It must end before the next message.
type progress struct {
	doing string
	bar   *progressbar.ProgressBar // nil: nothing is shown now
}

// show shows how many units of a part of the work are done. A total of 0 is not known.
func (p *progress) show(doing string, done, total int64) {
	if !isatty.IsTerminal(os.Stderr.Fd()) {
		return
	}
	if p.bar == nil || doing != p.doing {
		p.end()
		if total == 0 {
			total = -1 // shows that it goes on
		}
		p.doing = doing
		p.bar = progressbar.NewOptions64(total, progressbar.OptionSetDescription(doing), progressbar.OptionSetWriter(os.Stderr),
			progressbar.OptionSetWidth(30), progressbar.OptionClearOnFinish(), progressbar.OptionSetRenderBlankState(true))
	}
	_ = p.bar.Set64(done) // a terminal that is gone does not end the work
}

// end removes what is shown.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
		p.bar = nil
	}
}
