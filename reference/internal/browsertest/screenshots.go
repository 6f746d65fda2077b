package browsertest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

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
