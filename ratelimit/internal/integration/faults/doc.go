// Package faults tests what package redislimit promises, alone and behind package
// failover, against real Redis servers. It kills, stops, empties, replaces, cuts off,
// slows down or fills a server while 64 callers use it. docs/FAULTS.md has the results.
// This command rewrites them:
//
//	go generate ./ratelimit/internal/integration/faults
package faults

//go:generate go test -count 1 . -write ../../../../docs/FAULTS.md
