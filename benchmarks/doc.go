// Package benchmarks measures this module beside the rate limiters that a Go
// service would use in its place, on the same work and in the same run. It
// holds nothing but tests.
//
//	go test -run '^$' -bench . -benchtime 1x ./...   once each, to see that all of it runs
//	go test -run '^$' -bench Take -benchtime 300ms   decisions in memory, beside the peers
//	go test .                                        what the peers do otherwise
//	go run ./cmd/ratios -help                        the tables of docs/BENCHMARKS.md
//	go generate .                                    renew them (20 minutes)
//
// # The work
//
// A request is held against two quotas, one a minute and one a day. Here that is
// one call, or one middleware. A peer knows one quota at a time, and so it takes
// two calls, or two middlewares, of which the second is not asked when the first
// refuses: what is cheapest for the peer, and not what is right. The quota that
// refuses is the one asked first.
//
// A key is a string of 45 bytes. Where there are few of them they are ready
// strings. With a million they are made in place, in a buffer that stays in the
// first-level cache, which takes some 10 ns: a slice of a million strings would
// add two cache misses to each call, and in a service there are none, since the
// key has just been read from the request. The order is that of a linear
// congruential generator, the same for all. BenchmarkTake/peer=none is what the
// harness takes by itself.
//
// Every engine is called through one func value, and is filled with its keys
// before the clock starts. Each benchmark checks that its requests were admitted,
// or refused, as the case has it.
//
// # Names
//
// The parts of a name are key=value pairs, so that benchstat can put the peers
// side by side:
//
//	go test -run '^$' -bench Take -count 6 > new.txt
//	benchstat -col /peer new.txt
//
// # What needs more
//
// With -benchtime 1x, keys are a twentieth of what the names say: that run is
// for seeing that everything runs.
//
// The benchmarks of the engines on Redis start a redis-server on a free port, and
// are skipped if there is none. BenchmarkFlood takes a minute, and is skipped
// unless the environment has GATEHOUSE_LONG=1.
package benchmarks

//go:generate go run ./cmd/ratios -write ../docs/BENCHMARKS.md
