// Package benchmarks compares Gatehouse with the other rate limiters that a Go service
// might use, with the same workload and in the same run. It has only tests.
//
//	go test -run '^$' -bench . -benchtime 1x ./...   once each, to see that all of it runs
//	go test -run '^$' -bench Take -benchtime 300ms   decisions in memory, of all limiters
//	go test .                                        what the peers do differently
//	go run ./cmd/ratios -help                        the tables of docs/BENCHMARKS.md
//	go generate .                                    rewrite them (over half an hour)
//	go run ./cmd/server -help                        the tables of reference/docs/SERVER_BENCHMARKS.md
//
// docs/BENCHMARKS.md describes the workload. A million keys are made one by one in a buffer
// that stays in the first-level cache, which takes some 10 ns: a slice of a million strings
// would add two cache misses to each call. BenchmarkTake/peer=none is the time of the harness
// itself. Each benchmark checks that its requests were admitted, or refused, as the case says.
//
// With -benchtime 1x, which only checks that everything runs, there are a twentieth as
// many keys as the names say. The benchmarks of the engines on Redis start a redis-server on a free port, and
// are skipped if there is none. BenchmarkFlood takes a minute, and is skipped
// unless the environment has GATEHOUSE_LONG=1.
package benchmarks

//go:generate go run ./cmd/ratios -long -write ../docs/BENCHMARKS.md
