package webpage_test

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/animalstore/gatehouse/reference/internal/webpage"
)

// Text can be read on every ground that it is on: a contrast of 4.5 at least (WCAG 2.2
// success criterion 1.4.3, level AA). The edges of controls have 3 (1.4.11).
func TestContrast(t *testing.T) {
	light, dark := palettes(t)
	grounds := []string{"ground", "surface", "sunken"}
	for scheme, colours := range map[string]map[string]string{"light": light, "dark": dark} {
		for text, on := range map[string][]string{
			"text": append(grounds, "warn-ground", "bad-ground", "good-ground"), "muted": grounds,
			"accent": append(grounds, "warn-ground", "bad-ground"), "on-accent": {"accent"},
			"good": {"surface", "good-ground"}, "warn": {"surface", "warn-ground"}, "bad": {"surface", "bad-ground"},
		} {
			for _, ground := range on {
				if got := contrast(t, colours[text], colours[ground]); got < 4.5 {
					t.Errorf("%s: %s on %s has a contrast of %.2f, want 4.5", scheme, text, ground, got)
				}
			}
		}
		if got := contrast(t, colours["edge"], colours["surface"]); got < 3 {
			t.Errorf("%s: the edge of a control has a contrast of %.2f, want 3", scheme, got)
		}
	}
}

// palettes returns the colours of base.css by their names, light and dark.
func palettes(t *testing.T) (light, dark map[string]string) {
	t.Helper()
	files, err := webpage.Files("/", fstest.MapFS{"files/x.js": {}})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Path != "/base.css" {
			continue
		}
		before, after, _ := strings.Cut(string(f.Body), "prefers-color-scheme: dark")
		return colours(before), colours(after)
	}
	t.Fatal("there is no base.css")
	return nil, nil
}

func colours(css string) map[string]string {
	found := make(map[string]string)
	for _, m := range regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{6});`).FindAllStringSubmatch(css, -1) {
		found[m[1]] = m[2]
	}
	return found
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// luminance is the relative luminance of a colour such as "1c2126", as WCAG defines it.
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		if len(colour) != 6 {
			t.Fatalf("there is no such colour: %q", colour)
		}
		n, err := strconv.ParseUint(colour[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			sum += weight * c / 12.92
		} else {
			sum += weight * math.Pow((c+0.055)/1.055, 2.4)
		}
	}
	return sum
}
