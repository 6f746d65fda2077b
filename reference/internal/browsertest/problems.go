package browsertest

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/emulation"
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

var directory = flag.String("screenshots", "", "the absolute path of a directory for pictures of the pages; without it, tests write none")

// widths are those of a small phone and of a desktop.
var widths = map[string]int64{"narrow": 360, "wide": 1440}

// Screenshots writes the page as it is now, light and dark, narrow and wide, to the
// directory of the flag -screenshots, scrolled to the first element that a selector
// finds. With or without the flag, it fails the test if the content is wider than the
// window.
func (p *Page) Screenshots(t testing.TB, name, selector string) {
	t.Helper()
	for width, pixels := range widths {
		for _, scheme := range []string{"light", "dark"} {
			Call(t, p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			})
			p.Do(t, chromedp.EmulateViewport(pixels, 900))
			if got := Evaluate[int64](t, p, "document.documentElement.scrollWidth"); got > pixels {
				t.Errorf("%s: the content is %d pixels wide, want %d at most", name, got, pixels)
			}
			Evaluate[chromedp.Void](t, p, fmt.Sprintf(`new Promise((painted) => {
				document.querySelector(%s).scrollIntoView();
				requestAnimationFrame(() => requestAnimationFrame(() => painted()));
			})`, quote(selector)))
			if *directory == "" {
				continue
			}
			image, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(*directory, fmt.Sprintf("%s-%s-%s.png", name, width, scheme))
			if err := os.MkdirAll(*directory, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, image, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	Call(t, p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{})
	p.Do(t, chromedp.EmulateViewport(1440, 900))
}

// controls are the roles that a screen reader announces with a name.
var controls = map[string]bool{
	"textbox": true, "combobox": true, "button": true, "link": true, "checkbox": true,
	"DisclosureTriangle": true, "dialog": true, "img": true, "image": true, "progressbar": true,
}

// CheckNames fails the test if the accessibility tree of the page as it is now has a
// control, a picture or a dialog without a name, or fewer than least of them.
func (p *Page) CheckNames(t testing.TB, least int) {
	t.Helper()
	seen := 0
	for _, n := range Call(t, p, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
		if n.Ignored || n.Role == nil || !controls[text(n.Role)] {
			continue
		}
		seen++
		if n.Name == nil || text(n.Name) == "" {
			t.Errorf("a %s (DOM node %d) has no name for screen readers", text(n.Role), n.BackendDOMNodeID)
		}
	}
	if seen < least {
		t.Errorf("the accessibility tree has %d controls, want %d at least", seen, least)
	}
}

func text(v *accessibility.Value) string {
	var s string
	_ = json.Unmarshal(v.Value, &s) // another type is not a text
	return s
}
