// Package logging is the log of the server: its level, format, file and samples, as the
// settings have them.
//
//	log, err := logging.Open(settings.Log, os.Stdout)
//	...
//	defer log.Close(2 * time.Second)
//	log.Logger().Info("serving")
//
// While the server runs, the level and the sampling can change, and a file that was renamed
// can be opened again under its old name.
//
// A program that logs never waits, neither for a reader of the log nor for a full disk:
// lines wait in memory, up to 1 MiB, and one goroutine writes them. If there is no more
// room, or a write fails, lines are dropped and counted, and the log says how many as soon
// as it can be written again. A process that is killed loses the lines that are waiting,
// which are usually those of the last millisecond.
package logging
