package webpage

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
)

// Policy is the Content-Security-Policy of the pages (CSP level 3). Scripts and styles
// are files of the same origin, and text never becomes HTML or code.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// A File is one file of a page.
type File struct {
	Path        string // of the URL, from the root
	ContentType string
	Body        []byte // must not be changed
}

// contentTypes are the media types of the files by the extensions of their names.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

//go:embed files
var shared embed.FS

// Files returns the files that all pages share and those of one page, which are in the
// directory files of own, all with paths in dir. It is an error if the type of a file
// is not known.
func Files(dir string, own fs.FS) ([]File, error) {
	var files []File
	for _, from := range []fs.FS{shared, own} {
		entries, err := fs.ReadDir(from, "files")
		if err != nil {
			return nil, fmt.Errorf("webpage: %w", err)
		}
		for _, e := range entries {
			body, err := fs.ReadFile(from, path.Join("files", e.Name()))
			if err != nil {
				return nil, fmt.Errorf("webpage: %w", err)
			}
			contentType, ok := contentTypes[path.Ext(e.Name())]
			if !ok {
				return nil, fmt.Errorf("webpage: %s: no media type is known for this extension", e.Name())
			}
			files = append(files, File{Path: path.Join(dir, e.Name()), ContentType: contentType, Body: body})
		}
	}
	return files, nil
}

// HTML returns a page itself as a file.
func HTML(path string, body []byte) File {
	return File{Path: path, ContentType: contentTypes[".html"], Body: body}
}
