// Command reference is petstore, the pets API over HTTP and the tools to run it.
//
//	petstore serve        run the server; the command if none is given
//	petstore keys         make, list and end API keys
//	petstore bans         list and end bans on a running server
//	petstore plans        show the plans that the settings give
//	petstore openapi      print the OpenAPI document
//	petstore version      print the version
//
// Each command explains itself with --help.
package main

import (
	"os"

	"github.com/animalstore/gatehouse/reference/internal/cli"
)

func main() {
	os.Exit(cli.Run(os.Args[1:]))
}
