// Command reference is petstore, the pets API over HTTP and the tools to run it.
//
// petstore help lists the commands. Where to look in the packages below internal:
//
//	a key is checked           api.gate, with the Verifier of middleware/apikey
//	a pet is written           createPet in api, then CreatePet of package sqlite or postgres
//	a plan becomes a quota     Plans.Of in config; api.caller charges it
//	Redis is away              openShared in server, with ratelimit/failover
//	a setting is declared      config/settings.go
package main

import (
	"os"
	_ "time/tzdata" // plans may name time zones, also where the system has none

	"github.com/animalstore/gatehouse/reference/internal/cli"
)

func main() {
	os.Exit(cli.Run(os.Args[1:]))
}
