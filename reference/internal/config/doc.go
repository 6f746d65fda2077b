// Package config reads what the server runs by: a YAML file, the environment and
// the command line. A flag counts over the environment, the environment over the
// file, the file over the default.
//
//	c, err := config.Load(flags, os.LookupEnv)
//
// The file is read strictly. Whatever is wrong, be it an unknown member, a value
// of the wrong type or out of its range, something given twice, or settings that
// do not go together, is named with its place and how to mend it, and all
// mistakes at once:
//
//	petstore.yaml:7:24: plans.free[1]: quota "1000/dya": window: want second, minute, hour, day, or a duration such as 30s
//	PETSTORE_LISTEN: listen: "8080" is not host and port, such as 127.0.0.1:8080
//
// A [Config] holds ready values, such as plans that were checked when they were
// made. No error repeats a token or an address of a database.
package config
