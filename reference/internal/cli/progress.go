package cli

import (
	"os"

	"github.com/mattn/go-isatty"
	"github.com/schollz/progressbar/v3"
)

// A progress shows on a terminal how far long work is, and how long it will still take.
// Elsewhere it shows nothing.
type progress struct {
	out   *os.File // nil: not a terminal
	doing string
	bar   *progressbar.ProgressBar // nil: nothing is shown now
}

// newProgress returns a progress on standard error, on which messages are. It must end
// before the next message.
func newProgress() *progress {
	if !isatty.IsTerminal(os.Stderr.Fd()) {
		return &progress{}
	}
	return &progress{out: os.Stderr}
}

// show shows how many units of a part of the work are done. A total of 0 is not known.
func (p *progress) show(doing string, done, total int64) {
	if p.out == nil {
		return
	}
	if p.bar == nil || doing != p.doing {
		p.end()
		if total == 0 {
			total = -1 // shows that it goes on
		}
		p.doing = doing
		p.bar = progressbar.NewOptions64(total, progressbar.OptionSetDescription(doing), progressbar.OptionSetWriter(p.out),
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
