package console

import (
	"embed"
	"fmt"

	"github.com/animalstore/gatehouse/reference/internal/webpage"
)

//go:embed files
var files embed.FS

//go:embed console.html
var page []byte

// New returns the page, which is at /, and the files that it uses, which are below
// /console.
func New() ([]webpage.File, error) {
	others, err := webpage.Files("/console", files)
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	return append([]webpage.File{webpage.HTML("/", page)}, others...), nil
}
