// Package slots shares a limit on requests in progress between processes, in Redis. It is
// for requests that take long, such as exports and streams, with package
// middleware/inflight:
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	exports, err := slots.New(client, "exports", 10*time.Second)
//	...
//	defer exports.Close() // after Shutdown of the server
//	perUser, err := inflight.New(4, identify, inflight.Options{Shared: exports.Enter})
//
// or alone, as in a stream interceptor of gRPC or Connect: [Pool.Enter] has an example.
//
// A request takes a slot of its subject before it runs, and gives it back when it ends, by
// one round trip to Redis each. A request beyond the limit in its own process is refused
// without one. A slot is a lease. Its process renews it as long as the request runs, which
// may be for days; the leases of a process that crashed end.
//
// # What holds
//
// While all processes live and Redis answers, at most L requests of a subject run, and as
// many if so many come. The clocks of the processes do not matter. More than L can run:
//
//   - Redis does not answer within 250 ms, or answers with an error. Then each process
//     allows L of its own. Enter returns the error, and inflight.Stats counts it. While
//     an answer is late, no other request waits for that server, or that master of a cluster.
//   - A process is paused for more than two thirds of a lease (SIGSTOP, a virtual machine
//     that is moved). Its requests run on when it does, but others may have their slots:
//     as many more as it had, at most L.
//   - Redis forgets leases: it is restarted empty, a replica takes over that had not received
//     them, it evicts keys, or its clock jumps ahead. At most L more are admitted.
//
// A process adds its leases again within a third of a lease after it goes on or Redis
// answers. From then on no request is admitted until fewer than L run.
//
// Fewer than L run for at most one lease after a process has crashed, by as many as it had,
// and after requests have ended while Redis did not answer. If the clock of Redis steps
// back, this takes as much longer.
//
// A subject with requests in progress has one key, inflight:NAME:{SUBJECT}, a sorted set that
// expires with the last lease. One server and a cluster work. A Redis user needs this rule (ACL),
// for a cluster also +cluster|slots and +asking, and for another database than 0 +select:
//
//	ACL SETUSER slots on >PASSWORD resetchannels ~inflight:*
//		+evalsha +eval +time +zremrangebyscore +zcard +zscore +zadd +pttl +pexpire +zrem
package slots
