//go:build unix

package faults_test

import "testing"

// A scenario is a fault of the server, or of the way to it.
type scenario struct {
	name  string
	text  string // for the document
	loss  string // what is forgotten; "": nothing
	lasts bool   // Redis decides nothing until the fault is mended
	stage func(t *testing.T) stage
}

var scenarios = []scenario{
	{
		name: "killed", lasts: true, stage: killed,
		text: "`SIGKILL` to a server with an append-only file, with which it is then started again.",
	},
	{
		name: "stopped", lasts: true, stage: stopped,
		text: "`SIGSTOP`: connections stay open, the kernel accepts new ones, and nothing is answered. Then `SIGCONT`: the server does what it was asked meanwhile.",
	},
	{
		name: "restarted empty", stage: emptied,
		text: "`SIGKILL` to a server that keeps nothing on disk, and a new one in its place at once.",
		loss: "What was counted before is forgotten, so that each subject has one limit more.",
	},
	{
		name: "failed over to the replica", stage: replaced,
		text: "`SIGKILL` to a master. A sentinel, which waits for half a second, has the replica take over. The client asks the sentinel.",
		loss: "What the replica had not heard of when the master died is forgotten.",
	},
	{
		name: "cut off in the middle of a reply", stage: cut,
		text: "All connections are closed in the middle of a reply, again and again, each time after some more bytes.",
	},
	{
		name: "slow replies", lasts: true, stage: slow,
		text: "Every reply is held back for 120 ms: longer than the budget of 50 ms, and not as long as the timeout of the client.",
	},
	{
		name: "full memory", lasts: true, stage: full,
		text: "`maxmemory-policy noeviction`, and another client has filled the memory: the server answers, and refuses to write. It still denies subjects that have used up the limit, which needs no writing. Then the other client's key is deleted.",
	},
}
