package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// timeout ends the browser of a test that hangs.
const timeout = 5 * time.Minute

// A Page is a page in a browser of its own. It is for one goroutine.
type Page struct {
	ctx    context.Context
	origin string

	mu       sync.Mutex
	problems []string
}

// Open starts a browser with a new profile and opens a page in it. The browser ends with
// the test.
func Open(t testing.TB, address string) *Page {
	t.Helper()
	browser := require(t)
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(browser), chromedp.UserDataDir(t.TempDir()),
		chromedp.Env("TMPDIR=/tmp"), // the path of a socket has at most 107 bytes
		chromedp.IgnoreCertErrors,   // of test servers
		chromedp.Flag("disable-component-update", true), chromedp.Flag("no-proxy-server", true))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium as root does not start otherwise
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	t.Cleanup(cancel)
	ctx, _ = chromedp.NewExecAllocator(ctx, options...)
	p := &Page{origin: at.Scheme + "://" + at.Host}
	p.ctx, _ = chromedp.NewContext(ctx, chromedp.WithListener(p.listen))
	// Cancel waits until the browser has ended, so that its directory can be removed.
	t.Cleanup(func() { _ = chromedp.Cancel(p.ctx) })
	t.Cleanup(func() { p.check(t) })
	Call(t, p, network.Enable, network.EnableParams{})
	Call(t, p, log.Enable, cdp.Empty{})
	Call(t, p, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "UTC"})
	p.Do(t, chromedp.Navigate(address))
	return p
}

// require returns the path of Chromium, or ends the test if there is none.
func require(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("GATEHOUSE_REQUIRE_SERVERS") == "1" {
		t.Fatal("chromium is not on this machine, and GATEHOUSE_REQUIRE_SERVERS=1")
	}
	t.Skip("chromium is not on this machine")
	return ""
}

// patience is how long WaitText waits for a text, and Do for an element. A machine that
// runs all tests at once is slow.
const patience = time.Minute

// Do runs actions, and ends the test if one of them fails.
func (p *Page) Do(t testing.TB, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatalf("after %v at most: %v", patience, err)
	}
}

// Click clicks the first element that a selector finds, once it is visible.
func (p *Page) Click(t testing.TB, selector string) {
	t.Helper()
	p.Do(t, chromedp.Click(chromedp.CSS(selector)))
}

// Type replaces the text in a field.
func (p *Page) Type(t testing.TB, selector, text string) {
	t.Helper()
	p.Do(t, chromedp.WaitVisible(chromedp.CSS(selector)))
	// Clear and SendKeys of chromedp read what they know of the element without its lock.
	Evaluate[bool](t, p, fmt.Sprintf(`((field) => { field.focus(); field.select(); return true; })(document.querySelector(%s))`, quote(selector)))
	p.Do(t, chromedp.KeyEvent(kb.Backspace+text))
}

// Call calls a command of the Chrome DevTools Protocol.
func Call[P, R any](t testing.TB, p *Page, command cdp.Command[P, R], params P) R {
	t.Helper()
	result, err := chromedp.Call(p.ctx, command, params)
	if err != nil {
		t.Fatalf("%s: %v", command.Method, err)
	}
	return result
}

// Evaluate returns the value of a JavaScript expression, or what it promises.
func Evaluate[T any](t testing.TB, p *Page, expression string) T {
	t.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%.200s: %v", expression, err)
	}
	return value
}

// WaitText waits until the visible text of the first element that a selector finds
// matches a regular expression, and returns the text.
func (p *Page) WaitText(t testing.TB, selector, pattern string) string {
	t.Helper()
	// chromedp.Poll needs new Function, which the pages forbid.
	text := Evaluate[string](t, p, fmt.Sprintf(`new Promise((done) => {
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
