//go:build unix

package faults

import "testing"

// A scenario is a fault of the server, or of the way to it.
type scenario struct {
	name  string
	text  string // for the document
	loss  string // what is forgotten; "": nothing
	lasts bool   // Redis, or one master, decides nothing until the fault is mended
	stage func(t *testing.T) stage

	promises []promise // besides those of the arrangement
}

var scenarios = []scenario{
	{
		name: "killed", lasts: true, stage: killed,
		text: "`SIGKILL` to a server with an append-only file that waits for no disk (`appendfsync no`). Then the server is started again with the same file.",
	},
	{
		name: "stopped", lasts: true, stage: stopped,
		text: "`SIGSTOP`: connections stay open, the kernel accepts new ones, and nothing is answered. Then `SIGCONT`: the server executes the commands that it received meanwhile.",
	},
	{
		name: "one master stopped", lasts: true, stage: oneStopped, promises: []promise{elsewhere},
		text: "`SIGSTOP` to one of three masters of a cluster without replicas, with `cluster-require-full-coverage no`, until the others have marked it as failed. Then `SIGCONT`.",
	},
	{
		name: "one master killed", lasts: true, stage: oneKilled, promises: []promise{elsewhere},
		text: "`SIGKILL` to one of three masters of such a cluster, until the others have marked it as failed. Then the master is started again with its append-only file.",
	},
	{
		name: "restarted empty", stage: emptied,
		text: "`SIGKILL` to a server that keeps nothing on disk. An empty one is started at the same address immediately.",
		loss: "Usage counted before is lost: each subject has its whole limit again.",
	},
	{
		name: "failed over to the replica", stage: replaced,
		text: "`SIGKILL` to a master. A sentinel promotes the replica after half a second. The client finds the new master through the sentinel.",
		loss: "Usage that the replica had not received when the master died is lost.",
	},
	{
		name: "cut off in the middle of a reply", stage: cut,
		text: "All connections are closed in the middle of a reply, again and again, each time after a few bytes more.",
	},
	{
		name: "slow replies", lasts: true, stage: slow,
		text: "Every reply is held back for 120 ms: longer than the budget of 50 ms, but shorter than the timeout of the client.",
	},
	{
		name: "full memory", lasts: true, stage: full,
		text: "`maxmemory-policy noeviction`, and another client has filled the memory: the server answers, but refuses to write. It still denies subjects that have used up their limit, because that needs no write. Then the other client's key is deleted.",
	},
}
