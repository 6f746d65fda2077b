// Package pages has the web page of the server for its users, and the files that it uses.
//
//	files, err := pages.Docs(document.JSON(), "/docs")
//	for _, f := range files {
//		handle(f.Path, f.ContentType, f.Body) // with pages.Policy
//	}
//
// On the page of [Docs] people read and try the API. Its text is HTML that the server
// renders once from the OpenAPI document, so it reads without scripts too. Each operation
// has a chapter with its operationId as anchor: /docs#getPet. A script sends requests with
// the key that the reader types in, and explains the answers, above all the rate limits.
//
// Keys stay in the memory of the page. It works from the binary alone: it loads nothing from
// another origin, which [Policy] also forbids.
//
// Swagger UI would be 1.5 MB in the binary. It needs evaluated code (new Function), which
// [Policy] forbids, and knows neither limits, bans nor dates of deprecations.
package pages

import (
	"embed"
	"fmt"
	"path"
)

// Policy is the Content-Security-Policy of the page (CSP level 3). Scripts and styles
// are files of the same origin, and text never becomes HTML or code.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// A File is a page, or a file that a page uses.
type File struct {
	Path        string // of the URL, from the root
	ContentType string
	Body        []byte // must not be changed
}

var contentTypes = map[string]string{ // by extension
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

//go:embed shared docs
var files embed.FS

// withFiles returns a page, and with paths in dir the files that all pages share and those
// of the page, which are embedded in the directory own.
func withFiles(at string, page []byte, dir, own string) ([]File, error) {
	all := []File{{at, contentTypes[".html"], page}}
	for _, from := range []string{"shared", own} {
		entries, err := files.ReadDir(from)
		if err != nil {
			return nil, fmt.Errorf("pages: %w", err)
		}
		for _, e := range entries {
			body, err := files.ReadFile(path.Join(from, e.Name()))
			if err != nil {
				return nil, fmt.Errorf("pages: %w", err)
			}
			all = append(all, File{path.Join(dir, e.Name()), contentTypes[path.Ext(e.Name())], body})
		}
	}
	return all, nil
}
