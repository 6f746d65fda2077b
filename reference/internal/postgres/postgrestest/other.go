//go:build !unix

package postgrestest

import "testing"

const missing = "PostgreSQL servers for tests need Unix"

// Password is the password in [Server.URL].
const Password = "unused"

// A Server does not start on this system: its tests are skipped.
type Server struct{}

func Start(t testing.TB, _ ...string) *Server { t.Skip(missing); return nil }
func Database(t testing.TB) string            { t.Skip(missing); return "" }

func (*Server) Exec(string, ...string)                { panic(missing) }
func (*Server) Stop()                                 { panic(missing) }
func (*Server) URL(string) string                     { panic(missing) }
func (*Server) UserURL(string, string, string) string { panic(missing) }
func (*Server) Restart()                              { panic(missing) }
