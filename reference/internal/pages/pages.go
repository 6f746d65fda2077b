// Package pages has the web page on which people read and try the API, and the files that it
// uses.
//
//	files, err := pages.Docs(document)
//	for _, f := range files {
//		handle(f.Path, f.ContentType, f.Body) // with pages.Policy
//	}
//
// Its text is HTML that the server renders from the OpenAPI document, so it reads without
// scripts too. Each operation has a chapter with its operationId as anchor: /docs#getPet. A
// script sends requests with the key that the reader types in, and explains the answers, above
// all the rate limits. The key stays in the memory of the page.
//
// The page works from the binary alone: it loads nothing from another origin, which [Policy]
// also forbids. Swagger UI would be 1.5 MB in the binary. It needs evaluated code
// (new Function), which [Policy] forbids, and knows neither limits, bans nor dates of
// deprecations.
package pages

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"strconv"
	"time"
)

// Policy is the Content-Security-Policy of the page (CSP level 3). Scripts and styles
// are files of the same origin, and text never becomes HTML or code.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// A File is the page, or a file that it uses.
type File struct {
	Path        string // of the URL, from the root
	ContentType string
	Body        func() ([]byte, error) // renders the page, which takes about 25 ms
}

var contentTypes = map[string]string{ // by extension
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

//go:embed docs.html docs
var files embed.FS

// Path is the path of the page. The files that it uses are below it.
const Path = "/docs"

// Docs returns the page for an OpenAPI document, and the files that it uses.
func Docs(document []byte) ([]File, error) {
	all := []File{{Path, "text/html; charset=utf-8", func() ([]byte, error) { return render(document) }}}
	entries, err := files.ReadDir("docs")
	if err != nil {
		return nil, fmt.Errorf("pages: %w", err)
	}
	for _, e := range entries {
		body := func() ([]byte, error) { return files.ReadFile("docs/" + e.Name()) }
		all = append(all, File{path.Join(Path, e.Name()), contentTypes[path.Ext(e.Name())], body})
	}
	return all, nil
}

func render(document []byte) ([]byte, error) {
	d, err := read(document)
	if err != nil {
		return nil, fmt.Errorf("pages: %w", err)
	}
	t, err := template.New("docs.html").Funcs(template.FuncMap{"date": date, "phrase": phrase, "class": class}).ParseFS(files, "docs.html")
	if err != nil {
		return nil, fmt.Errorf("pages: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, d); err != nil {
		return nil, fmt.Errorf("pages: %w", err)
	}
	return b.Bytes(), nil
}

// date returns a date such as 2030-12-05 for a reader: "5 December 2030".
func date(text string) string {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return text
	}
	return t.Format("2 January 2006")
}

// phrase returns the phrase of a status, such as "OK" of "200", or "".
func phrase(status string) string {
	code, _ := strconv.Atoi(status) // 0 for default
	return http.StatusText(code)
}

// class returns the class of a status, or of default, for its colour.
func class(status string) string {
	switch {
	case status == "429":
		return "warn"
	case status < "400":
		return "good"
	default:
		return "bad"
	}
}
