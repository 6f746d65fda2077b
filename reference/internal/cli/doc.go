// Package cli is the command line of petstore.
//
//	os.Exit(cli.Run(os.Args[1:]))
//
// Standard output gets only the result of a command, so that it can be piped: a key,
// a table, JSON, the log of the server. Messages go to standard error.
//
// Exit codes:
//
//	0  success
//	1  failure
//	2  usage error, on the command line, in the environment or in the settings file;
//	   nothing was done
package cli
