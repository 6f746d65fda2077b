// Package logging is the log of the server: its level, format, file and samples, as the
// settings have them.
//
//	log, err := logging.Open(settings.Log, os.Stdout)
//	...
//	defer log.Close(2 * time.Second)
//	log.Logger().Info("serving")
//
// Lines go through package logbuffer, so that a program which logs never waits. While it
// runs, the level and the sampling can change, and a file that was renamed can be opened
// again under its old name.
package logging
