package cli

import (
	"bytes"
	"encoding/json"

	"github.com/animalstore/gatehouse/reference/internal/api"
)

type openapiCmd struct{ configFlag }

// Help is shown by --help.
func (openapiCmd) Help() string {
	return "The settings determine which operations the document marks as deprecated."
}

func (c openapiCmd) Run(o output) error {
	settings, err := c.load()
	if err != nil {
		return err
	}
	document, err := api.Document(settings.Deprecations)
	if err != nil {
		return err
	}
	var b bytes.Buffer // indented for people and for diff
	if err := json.Indent(&b, document.JSON(), "", "  "); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err = b.WriteTo(o.out)
	return err
}
