// Command reference is petstore, the pets API over HTTP and the tools to run it.
//
//	petstore serve         run the server (the default command)
//	petstore keys          create, list, revoke and rotate API keys
//	petstore bans          list, start and end bans on a running server
//	petstore usage         show what an owner has left, and its requests by day
//	petstore deprecations  show the deprecated operations, and the owners that still use them
//	petstore audit         show the changes of keys and bans, and the actor of each
//	petstore health        ask a running server whether it works
//	petstore backup        copy a SQLite database to a file while servers run
//	petstore restore       replace a SQLite database by a backup
//	petstore migrate       create or upgrade the tables of the database
//	petstore import        copy a SQLite file into an empty PostgreSQL database
//	petstore plans         show the plans in the settings, and check the settings
//	petstore openapi       print the OpenAPI document
//	petstore version       print the version
//	petstore help          explain a command, as its --help does
//
// Where to look in the packages below internal:
//
//	a key is checked           api.gate, with the Verifier of middleware/apikey
//	a pet is written           createPet and storePet in api; store/tablepets.go, or CreatePet of package sqlite
//	a plan becomes a quota     readPlans in config; Plans.Of finds it for a key, and limit.New charges it
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
