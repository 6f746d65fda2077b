package browsertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// listen collects what must not happen.
func (p *Page) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		p.add("the script failed: %s", text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			p.add("the console has %s", e.Type)
		}
	case *log.EventEntryAdded:
		// Some tests ask for an answer with an error, which is logged with the source network.
		if e.Entry.Source != log.EntrySourceNetwork && (e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning) {
			p.add("the browser logs: %s: %s", e.Entry.Source, e.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, p.origin+"/") {
			p.add("a request to another origin: %s", e.Request.URL)
		}
	}
}

func (p *Page) add(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, fmt.Sprintf(format, args...))
}

// take returns what was collected, and forgets it.
func (p *Page) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	problems := p.problems
	p.problems = nil
	return problems
}

// check fails the test if anything was collected or stored.
func (p *Page) check(t testing.TB) {
	t.Helper()
	stored, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](
		"document.cookie + Object.keys(localStorage) + Object.keys(sessionStorage)"))
	if err != nil {
		t.Errorf("look for what the page has stored: %v", err)
	}
	if stored != "" {
		t.Errorf("the page has stored %q, want nothing", stored)
	}
	for _, problem := range p.take() {
		t.Error(problem)
	}
}
