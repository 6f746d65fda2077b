//go:build long

package pages_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/animalstore/gatehouse/internal/testenv"
)

// timeout ends the browser of a test that hangs.
const timeout = 5 * time.Minute

// A browser shows a page in headless Chromium. It is for one goroutine.
type browser struct {
	ctx    context.Context
	origin string

	mu       sync.Mutex
	problems []string
}

// browse starts a browser with a new profile and opens a page in it. The browser ends with
// the test.
func browse(t testing.TB, address string) *browser {
	t.Helper()
	path := testenv.Tool(t, "chromium")
	at, err := url.Parse(address)
	must(t, err)
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()),
		chromedp.Env("TMPDIR=/tmp"), // the path of a socket has at most 107 bytes
		chromedp.IgnoreCertErrors,   // of test servers
		chromedp.Flag("disable-component-update", true), chromedp.Flag("no-proxy-server", true),
		chromedp.Flag("host-resolver-rules", "MAP ops.test 127.0.0.1"))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium as root does not start otherwise
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	t.Cleanup(cancel)
	ctx, _ = chromedp.NewExecAllocator(ctx, options...)
	p := &browser{origin: at.Scheme + "://" + at.Host}
	p.ctx, _ = chromedp.NewContext(ctx, chromedp.WithListener(p.listen))
	// Cancel waits until the browser has ended, so that its directory can be removed.
	t.Cleanup(func() { _ = chromedp.Cancel(p.ctx) })
	t.Cleanup(func() { p.check(t) })
	call(t, p, network.Enable, network.EnableParams{})
	call(t, p, log.Enable, cdp.Empty{})
	call(t, p, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "UTC"})
	p.do(t, chromedp.Navigate(address))
	return p
}

// patience is how long waitText waits for a text, and do for an element. A machine that
// runs all tests at once is slow.
const patience = time.Minute

// do runs actions, and ends the test if one of them fails.
func (p *browser) do(t testing.TB, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatalf("after %v at most: %v", patience, err)
	}
}

// click clicks the first element that a selector finds, once it is visible.
func (p *browser) click(t testing.TB, selector string) {
	t.Helper()
	p.do(t, chromedp.Click(chromedp.CSS(selector)))
}

// enter replaces the text in a field.
func (p *browser) enter(t testing.TB, selector, text string) {
	t.Helper()
	p.do(t, chromedp.WaitVisible(chromedp.CSS(selector)))
	// Clear and SendKeys of chromedp read what they know of the element without its lock.
	evaluate[bool](t, p, fmt.Sprintf(`((field) => { field.focus(); field.select(); return true; })(document.querySelector(%s))`, quote(selector)))
	p.do(t, chromedp.KeyEvent(kb.Backspace+text))
}

// call calls a command of the Chrome DevTools Protocol.
func call[P, R any](t testing.TB, p *browser, command cdp.Command[P, R], params P) R {
	t.Helper()
	result, err := chromedp.Call(p.ctx, command, params)
	if err != nil {
		t.Fatalf("%s: %v", command.Method, err)
	}
	return result
}

// evaluate returns the value of a JavaScript expression, or what it promises.
func evaluate[T any](t testing.TB, p *browser, expression string) T {
	t.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%.200s: %v", expression, err)
	}
	return value
}

// waitText waits until the visible text of the first element that a selector finds
// matches a regular expression, and returns the text.
func (p *browser) waitText(t testing.TB, selector, pattern string) string {
	t.Helper()
	// chromedp.Poll needs new Function, which the pages forbid.
	text := evaluate[string](t, p, fmt.Sprintf(`new Promise((done) => {
		const end = performance.now() + %d;
		const look = () => {
			const text = document.querySelector(%s)?.innerText ?? "";
			if (new RegExp(%s).test(text) || performance.now() > end) done(text);
			else setTimeout(look, 20);
		};
		look();
	})`, patience.Milliseconds(), quote(selector), quote(pattern)))
	if !regexp.MustCompile(pattern).MatchString(text) {
		t.Fatalf("after %v, %s has the text %q, want %q", patience, selector, text, pattern)
	}
	return text
}

// quote returns text as a literal of JavaScript.
func quote(text string) string {
	literal, _ := json.Marshal(text) // cannot fail for a string
	return string(literal)
}

// listen collects what must not happen.
func (p *browser) listen(event any) {
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
		if to, err := url.Parse(e.Request.URL); err != nil || to.Scheme+"://"+to.Host != p.origin {
			p.add("a request to another origin: %s", e.Request.URL)
		}
	}
}

func (p *browser) add(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, fmt.Sprintf(format, args...))
}

// check fails the test if anything was collected or stored.
func (p *browser) check(t testing.TB) {
	t.Helper()
	stored, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](
		"document.cookie + Object.keys(localStorage) + Object.keys(sessionStorage)"))
	if err != nil {
		t.Errorf("look for what the page has stored: %v", err)
	}
	if stored != "" {
		t.Errorf("the page has stored %q, want nothing", stored)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, problem := range p.problems {
		t.Error(problem)
	}
}

var directory = flag.String("screenshots", "", "the absolute path of a directory for pictures of the pages; without it, tests write none")

// look fails the test if the page as it is now is wider than the window of a small phone or of
// a desktop. With the flag -screenshots it writes what both show, light and dark.
func (p *browser) look(t testing.TB, name string) {
	t.Helper()
	for _, pixels := range []int64{360, 1440} {
		p.do(t, chromedp.EmulateViewport(pixels, 900))
		if got := evaluate[int64](t, p, "document.documentElement.scrollWidth"); got > pixels {
			t.Errorf("%s: the content is %d pixels wide, want %d at most", name, got, pixels)
		}
		for _, scheme := range []string{"light", "dark"} {
			if *directory == "" {
				continue
			}
			call(t, p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			})
			image, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
			must(t, err)
			must(t, os.MkdirAll(*directory, 0o700))
			must(t, os.WriteFile(filepath.Join(*directory, fmt.Sprintf("%s-%d-%s.png", name, pixels, scheme)), image, 0o600))
		}
	}
}

// controls are the roles that a screen reader announces with a name.
var controls = map[string]bool{
	"textbox": true, "combobox": true, "button": true, "link": true, "checkbox": true,
	"DisclosureTriangle": true, "dialog": true, "img": true, "image": true, "progressbar": true,
}

// checkNames fails the test if the accessibility tree of the page as it is now has a
// control, a picture or a dialog without a name, or fewer than least of them.
func (p *browser) checkNames(t testing.TB, least int) {
	t.Helper()
	seen := 0
	for _, n := range call(t, p, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
		if n.Ignored || n.Role == nil || !controls[valueOf(n.Role)] {
			continue
		}
		seen++
		if n.Name == nil || valueOf(n.Name) == "" {
			t.Errorf("a %s (DOM node %d) has no name for screen readers", valueOf(n.Role), n.BackendDOMNodeID)
		}
	}
	if seen < least {
		t.Errorf("the accessibility tree has %d controls, want %d at least", seen, least)
	}
}

func valueOf(v *accessibility.Value) string {
	var s string
	_ = json.Unmarshal(v.Value, &s) // another type is not a text
	return s
}
