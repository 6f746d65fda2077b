// Package logging is the log of the server, on standard output.
//
//	log := logging.New(settings.Log, os.Stdout)
//	...
//	defer log.Close(2 * time.Second)
//	log.Logger().Info("serving")
//
// Requests that were denied (401, 403, 429) or cancelled (499) are summed for each network or
// key: the first has a line, and those after it one line a second with their count. So are
// requests that the admin listener refuses, and what net/http says about clients. Of more than
// 64 networks and keys at once, the others are summed together.
//
// A program that logs never waits, neither for a reader of the log nor for a full disk. Lines
// wait in memory, up to 1 MiB, and one goroutine writes them. If there is no more room, lines
// are dropped, and the log says how many as soon as it can be written again. A process that is
// killed loses the lines that are waiting, which are usually the lines of the last millisecond,
// and the sums of the last second.
package logging
