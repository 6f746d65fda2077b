// Package logging is the log of the server: its level, format and file, as the settings
// have them.
//
//	log, err := logging.Open(settings.Log, os.Stdout)
//	...
//	defer log.Close(2 * time.Second)
//	log.Logger().Info("serving")
//
// While the server runs, the level and the bound of the file can change, and a file that was
// renamed can be opened again under its old name.
//
// Requests that were denied (401, 403, 429) or cancelled (499) are summed for each network or
// key: the first has a line, and those after it one line a second with their count. Of
// more than 64 networks and keys at once, the others are summed together. A file that would
// grow beyond its bound is renamed, and the log goes on in a new one. Standard output has no
// bound.
//
// A program that logs never waits, neither for a reader of the log nor for a full disk:
// lines wait in memory, up to 1 MiB, and one goroutine writes them. If there is no more
// room, or a write fails, lines are dropped and counted, and the log says how many as soon
// as it can be written again. A process that is killed loses the lines that are waiting,
// which are usually those of the last millisecond, and the sums of the last second.
package logging
