// Package benchmarks compares Gatehouse with the other rate limiters that a Go service
// might use, with the same workload and in the same run. It has only tests.
//
//	go test -run '^$' -bench . -benchtime 1x ./...   once each, to see that all of it runs
//	go test -run '^$' -bench Take -benchtime 300ms   decisions in memory, of all limiters
//	go test .                                        what the peers do differently
//	go run ./cmd/ratios -help                        the tables of docs/BENCHMARKS.md
//	go generate .                                    rewrite them (25 minutes)
//	go run ./cmd/server -help                        the tables of reference/docs/SERVER_BENCHMARKS.md
//
// # The workload
//
// A request has two quotas, one a minute and one a day. Gatehouse decides both in one
// call, or one middleware. A peer decides one quota at a time, so it takes two calls,
// or two middlewares. If the first one denies the request, the second is not called;
// this is the cheapest way for the peer, although it charges denied requests. The
// quota that denies is always the first.
//
// A key is a string of 45 bytes. A small set of keys is made before the clock starts. A
// million keys are made one by one in a buffer that stays in the first-level cache,
// which takes some 10 ns: a slice of a million strings would add two cache misses to
// each call. A service does not have these, because it has just read the key from the
// request. The order is that of a linear congruential generator, the same for every
// limiter. BenchmarkTake/peer=none is the time of the harness itself.
//
// Every engine is called through one func value, and is filled with its keys
// before the clock starts. Each benchmark checks that its requests were admitted,
// or refused, as the case says.
//
// # Names
//
// The parts of a name are key=value pairs, so that benchstat can put the peers
// side by side:
//
//	go test -run '^$' -bench Take -count 6 > new.txt
//	go run golang.org/x/perf/cmd/benchstat@latest -col /peer new.txt
//
// # What needs more
//
// With -benchtime 1x, which only checks that everything runs, there are a twentieth as
// many keys as the names say.
//
// The benchmarks of the engines on Redis start a redis-server on a free port, and
// are skipped if there is none. BenchmarkFlood takes a minute, and is skipped
// unless the environment has GATEHOUSE_LONG=1.
package benchmarks

//go:generate go run ./cmd/ratios -write ../docs/BENCHMARKS.md
