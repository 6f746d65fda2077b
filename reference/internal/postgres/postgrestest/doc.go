// Package postgrestest starts PostgreSQL servers for tests, from the binaries on the
// machine. They listen on free ports of the loopback interface, and end with the tests.
//
//	url := postgrestest.Database(t)   // an empty database on a server that the tests share
//
//	s := postgrestest.Start(t, "max_connections=10")
//	s.Kill()
//	s.Restart()
//
// The binaries are looked for in PATH and then in /usr/lib/postgresql, where Debian keeps
// them. Without them a test that wants a server is skipped, or fails if the environment
// has GATEHOUSE_REQUIRE_SERVERS=1. PostgreSQL refuses to run as root, so a test that runs
// as root starts it as the user postgres or nobody.
package postgrestest
