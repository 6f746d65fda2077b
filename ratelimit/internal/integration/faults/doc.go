// Package faults is a test: what package redislimit promises, alone and behind
// package failover, is held against real Redis servers that are killed, stopped,
// emptied, replaced, cut off, slow or full while 64 callers use them. What it
// counts and measures is in docs/FAULTS.md, which the test renews with
//
//	go test -count 1 ./ratelimit/internal/integration/faults -write ../../../../docs/FAULTS.md
package faults
