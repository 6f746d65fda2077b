package browsertest

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
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
