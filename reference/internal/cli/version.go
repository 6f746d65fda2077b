package cli

import (
	"fmt"

	"github.com/animalstore/gatehouse/reference/internal/build"
)

type versionCmd struct {
	JSON bool `help:"Print JSON."`
}

func (c versionCmd) Run(o output) error {
	info := build.Read()
	if c.JSON {
		return printJSON(o.out, info)
	}
	_, err := fmt.Fprintln(o.out, "petstore "+info.String())
	return err
}
