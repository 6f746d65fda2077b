package pages_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/reference/internal/openapi"
	"github.com/animalstore/gatehouse/reference/internal/pages"
)

func document(t *testing.T, notices map[string]deprecation.Options) []byte {
	t.Helper()
	d, err := openapi.New(notices)
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

// Text of the document stays text, and a document that cannot be read is refused.
func TestHostileDocuments(t *testing.T) {
	const hostile = `<script>alert(1)</script>`
	page, _ := docs(t, []byte(strings.ReplaceAll(string(document(t, nil)), "List animals", hostile)))
	if strings.Contains(page, hostile) {
		t.Error("text of the document became HTML")
	}
	for name, d := range map[string]string{
		"no JSON":             `{`,
		"no server":           `{"paths": {}}`,
		"a missing reference": `{"servers": [{"url": "/v1"}], "paths": {"/x": {"get": {"parameters": [{"$ref": "#/components/parameters/Nothing"}]}}}}`,
		"a remote reference":  `{"servers": [{"url": "/v1"}], "paths": {"/x": {"get": {"responses": {"200": {"$ref": "https://elsewhere.example/"}}}}}}`,
		"a list of paths":     `{"servers": [{"url": "/v1"}], "paths": []}`,
	} {
		if _, err := pages.Docs([]byte(d), "/docs"); err == nil {
			t.Errorf("%s: New returns no error", name)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	d, err := openapi.New(nil)
	must(b, err)
	for b.Loop() {
		_, err := pages.Docs(d, "/docs")
		must(b, err)
	}
}
