package docpage

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"path"

	"github.com/animalstore/gatehouse/reference/internal/webpage"
)

//go:embed files
var files embed.FS

//go:embed page.html
var source string

// New returns the page for an OpenAPI document and the files that it uses, with the
// page first. at is its path, such as "/docs"; the other files are below it.
func New(document []byte, at string) ([]webpage.File, error) {
	p, err := newPage(document)
	if err != nil {
		return nil, fmt.Errorf("docpage: %w", err)
	}
	p.Dir = path.Base(at)
	t, err := template.New("page").Parse(source)
	if err != nil {
		return nil, fmt.Errorf("docpage: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		return nil, fmt.Errorf("docpage: %w", err)
	}
	others, err := webpage.Files(at, files)
	if err != nil {
		return nil, fmt.Errorf("docpage: %w", err)
	}
	return append([]webpage.File{webpage.HTML(at, b.Bytes())}, others...), nil
}
