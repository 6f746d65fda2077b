// Package cli is the command line of petstore.
//
//	os.Exit(cli.Run(os.Args[1:]))
//
// Standard output gets what a command is asked for and nothing else, so that it can
// be piped: a key, a table, JSON, the log of the server. What else there is to say
// to a person goes to standard error.
//
// Exit codes:
//
//	0  done
//	1  it was tried and did not work
//	2  told wrongly, on the command line, in the environment or in the settings
//	   file; nothing was done
package cli
