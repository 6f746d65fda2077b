package pages_test

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/reference/internal/openapi"
	"github.com/animalstore/gatehouse/reference/internal/pages"
)

var must = testcheck.NoError

// A file is a [pages.File] with its content.
type file struct{ ContentType, Body string }

// docs returns the page of a document, and all files by their paths.
func docs(t *testing.T, document []byte) (page string, all map[string]file) {
	t.Helper()
	files, err := pages.Docs(document)
	must(t, err)
	all = make(map[string]file)
	for _, f := range files {
		body, err := f.Body()
		must(t, err)
		all[f.Path] = file{f.ContentType, string(body)}
	}
	return all[pages.Path].Body, all
}

var (
	idOf     = regexp.MustCompile(`\bid="([^"]*)"`)
	toID     = regexp.MustCompile(`(?:href=|for=|aria-labelledby=|aria-describedby=|aria-controls=|link\(|chapter\(|panel: )"#?([^"/. :]*)"|find\("#([a-z-]+)"`)
	toFile   = regexp.MustCompile(`(?:src|href)="(docs/[^"]*)"`)
	toModule = regexp.MustCompile(`from "\./([^"]*)"`)
	unsafe   = regexp.MustCompile(`(?:src|href)="?https?:|\burl\(['"a-z]|@import|\sstyle=|\son[a-z]+=|(?:inner|outer)HTML|eval\(|localStorage|sessionStorage|document\.cookie`)
)

// Links lead to what exists, and nothing needs another origin, makes text HTML or code, or
// stores anything.
func TestPagesAreComplete(t *testing.T) {
	const dir = "/docs/"
	page, all := docs(t, document(t, nil))
	ids := map[string]bool{}
	for _, m := range idOf.FindAllStringSubmatch(page, -1) {
		if ids[m[1]] {
			t.Errorf("%s: the id %q is there twice", dir, m[1])
		}
		ids[m[1]] = true
	}
	for _, m := range toFile.FindAllStringSubmatch(page, -1) {
		if _, ok := all["/"+m[1]]; !ok {
			t.Errorf("%s: the page refers to %s, which is not served", dir, m[1])
		}
	}
	for name, f := range all {
		if f.ContentType == "" {
			t.Errorf("%s has no media type", name)
		}
		for _, m := range toModule.FindAllStringSubmatch(f.Body, -1) {
			if _, ok := all[dir+m[1]]; !ok {
				t.Errorf("%s imports %s, which is not served", name, m[1])
			}
		}
		for _, m := range toID.FindAllStringSubmatch(f.Body, -1) {
			if !ids[m[1]+m[2]] {
				t.Errorf("%s refers to %s, which the page does not have", name, m[0])
			}
		}
		if m := unsafe.FindString(f.Body); m != "" {
			t.Errorf("%s has %q", name, m)
		}
	}
	for _, word := range []string{"unsafe", "data:", "http", "*"} {
		if strings.Contains(pages.Policy, word) {
			t.Errorf("the policy has %q: %s", word, pages.Policy)
		}
	}
}

// Text can be read on every ground that it is on: a contrast of 4.5 at least (WCAG 2.2
// success criterion 1.4.3, level AA). The edges of controls have 3 (1.4.11).
func TestContrast(t *testing.T) {
	_, all := docs(t, document(t, nil))
	css := all["/docs/docs.css"].Body
	grounds := []string{"ground", "surface", "sunken"}
	for scheme, name := range []string{"light", "dark"} {
		for text, on := range map[string][]string{
			"text": append(grounds, "warn-ground", "bad-ground", "good-ground"), "muted": grounds,
			"accent": append(grounds, "warn-ground", "bad-ground"), "on-accent": {"accent"},
			"good": {"surface", "good-ground"}, "warn": {"surface", "warn-ground"}, "bad": {"surface", "bad-ground"},
			"edge": {"surface"},
		} {
			least := 4.5
			if text == "edge" {
				least = 3
			}
			for _, ground := range on {
				x, y := luminance(t, css, text, scheme), luminance(t, css, ground, scheme)
				if got := (max(x, y) + 0.05) / (min(x, y) + 0.05); got < least {
					t.Errorf("%s: %s on %s has a contrast of %.2f, want %.1f", name, text, ground, got, least)
				}
			}
		}
	}
}

// luminance is the relative luminance of a colour of the style sheet, as WCAG defines it, in
// the light (0) or the dark (1) scheme.
func luminance(t *testing.T, css, colour string, scheme int) float64 {
	t.Helper()
	m := regexp.MustCompile(`--` + colour + `: light-dark\(#([0-9a-f]{6}), #([0-9a-f]{6})\);`).FindStringSubmatch(css)
	if m == nil {
		t.Fatalf("there is no colour %s", colour)
	}
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(m[1+scheme][2*i:2*i+2], 16, 8)
		must(t, err)
		c := float64(n) / 255
		if c <= 0.04045 {
			sum += weight * c / 12.92
		} else {
			sum += weight * math.Pow((c+0.055)/1.055, 2.4)
		}
	}
	return sum
}

func document(t *testing.T, notices map[string]deprecation.Options) []byte {
	t.Helper()
	d, err := openapi.New(openapi.Options{Deprecations: notices})
	must(t, err)
	return d
}

// text returns the text of HTML, in one line.
func text(html string) string {
	return strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(html, "")), " ")
}

// Every operation has a chapter, and what the document says about it is in it.
func TestChapters(t *testing.T) {
	page, _ := docs(t, document(t, nil))
	for id, want := range map[string]string{
		"listPets":  `GET /v1/pets`,
		"createPet": `POST /v1/pets`,
		"getPet":    `GET /v1/pets/{petId}`,
		"getUsage":  `GET /v1/usage`,
	} {
		_, chapter, ok := strings.Cut(page, `<section class="operation" id="`+id+`"`)
		chapter, _, _ = strings.Cut(chapter, "</section>")
		if !ok || !strings.Contains(text(chapter), want) {
			t.Errorf("the chapter of %s has no %q: %.500s", id, want, text(chapter))
		}
	}
	for _, want := range []string{
		"limit query: integer, 1 to 100, default 20", "status query: one of available, pending, sold",
		"petId required path: integer, at least 1", "name required string, 1 to 255 characters",
		"status one of available, pending, sold Whether", "Without a status it is available.",
		"200 OK A page of animals. Body: array of Pet", "Other errors Any other error: 405, 412, 413, 414, 415 or 500",
		"429 rate_limit_exceeded You have reached the limit of 60 requests per minute.",
		"Limits Usage is counted for the owner of a key", "ban.ends required integer", "quotas required array of QuotaUsage",
	} {
		if !strings.Contains(text(page), want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Contains(page, "**") {
		t.Error("the page has ** of the description; the page knows only bold words at the beginning of a paragraph")
	}
	if strings.Contains(page, "<strong>Deprecated") {
		t.Error("an operation is marked as deprecated, and none is")
	}
}

func TestDeprecations(t *testing.T) {
	since, sunset := time.Date(2025, time.December, 5, 0, 0, 0, 0, time.UTC), time.Date(2030, time.December, 5, 0, 0, 0, 0, time.UTC)
	for want, notice := range map[string]deprecation.Options{
		`<strong>Deprecated since 5 December 2025.</strong> Removal on 5 December 2030; from then on the answer is 410. Use <a href="#listPets"><code>/v1/pets?status=available</code></a> instead.`: {Since: since, Sunset: sunset, Successor: "/v1/pets?status=available"},
		`<strong>Deprecated since 5 December 2025.</strong> Use <a href="https://api.example/v2"><code>https://api.example/v2</code></a> instead.`:                                                   {Since: since, Successor: "https://api.example/v2"},
		`<strong>Deprecated since 5 December 2025.</strong> Use <code>/v2/pets</code> instead.`:                                                                                                      {Since: since, Successor: "/v2/pets"},
		`<strong>Deprecated since 5 December 2025.</strong> </p>`:                                                                                                                                    {Since: since},
	} {
		page, _ := docs(t, document(t, map[string]deprecation.Options{"getPet": notice}))
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
		if got := strings.Count(page, "<strong>Deprecated"); got != 1 {
			t.Errorf("%d operations are marked as deprecated, want 1", got)
		}
	}
}

// Text of the document stays text.
func TestHostileDocuments(t *testing.T) {
	const hostile = `<script>alert(1)</script>`
	page, _ := docs(t, []byte(strings.ReplaceAll(string(document(t, nil)), "List animals", hostile)))
	if strings.Contains(page, hostile) {
		t.Error("text of the document became HTML")
	}
}
