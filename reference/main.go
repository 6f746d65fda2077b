// Command reference is petstore, the pets API over HTTP and the tools to run it.
//
//	petstore serve        run the server (the default command)
//	petstore keys         create, list, revoke and rotate API keys
//	petstore bans         list bans and unban clients of a running server
//	petstore plans        show the plans in the settings
//	petstore health       ask a running server whether it works
//	petstore help         explain a command, as its --help does
//	petstore openapi      print the OpenAPI document
//	petstore version      print the version
//
// Each command has --help.
package main

import (
	"os"
	_ "time/tzdata" // plans may name time zones, also where the system has none

	"github.com/animalstore/gatehouse/reference/internal/cli"
)

func main() {
	os.Exit(cli.Run(os.Args[1:]))
}
