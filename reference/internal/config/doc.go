// Package config reads the settings of the server: a YAML file, the environment and
// the command line. A flag overrides the environment, the environment overrides the
// file, and the file overrides the default.
//
//	source := config.NewSource(flags, os.LookupEnv)
//	c, err := source.Load()
//
// The file is read strictly. Mistakes are an unknown member, a value of the wrong
// type or out of its range, a member that occurs twice, and settings that contradict
// each other. The error names each mistake with its place, and says how to correct it:
//
//	petstore.yaml:7:24: plans.free[1]: quota "1000/dya": the window must be second, minute, hour, day, month, or a duration such as 30s or 168h
//	PETSTORE_LISTEN: must be host and port such as 127.0.0.1:8080, got "8080"
//
// To change its settings while it runs, a server reads the [Source] again, compares the
// result with the settings in force, and keeps those of them that need a restart:
//
//	next, err := source.Load()
//	...
//	merged, err := current.After(next)
//	...
//	for _, change := range current.Changes(next) { … }
//
// A [Config] holds checked values, such as plans. No error repeats a token or an
// address of a database.
package config
