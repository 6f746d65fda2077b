// Package postgres stores the data of the service in a PostgreSQL database, which any
// number of servers share.
//
//	s, err := postgres.Open(ctx, "postgres://petstore@db.example/petstore", postgres.Options{})
//	…
//	defer s.Close()
//	pet, err := s.CreatePet(ctx, store.NewPet{Name: "Rex", CategoryID: 1})
//
// # URLs
//
// URLs and their parameters are those of pgx, with these defaults: at most 16 connections
// (pool_max_conns), two seconds to connect to each server (connect_timeout), and, if
// there are several servers, only the primary (target_session_attrs). The parameter
// search_path says in which schema the tables are.
//
// PgBouncer in transaction mode needs default_query_exec_mode=exec, because it gives the
// statements of a session to several connections. It refuses search_path, which must be a
// setting of the user then (ALTER ROLE).
//
// # Durability
//
// A write is acknowledged when PostgreSQL has committed it, so fsync must be on and
// synchronous_commit must not be off. Both are so by default. Commits at the same time
// share a sync of the disk; each needs a connection for that.
//
// When a server fails over to a standby, a synchronous standby has all acknowledged
// writes, also those that are acknowledged when a call is repeated after an unknown
// outcome. An asynchronous one may lack the last of them, and may then give the IDs of lost
// pets to others.
//
// # Contexts and time
//
// A call waits for a connection until its context ends, and for at most Options.Timeout.
// Once it has one, it finishes, so that the outcome of a write is known and a client that
// hangs up does not cost a connection. It gets at most Options.Timeout for that; a read
// also ends at the deadline of its context. Lists of all keys and of the audit log get a
// minute.
//
// If the answer to a commit does not arrive, the write may be stored or not; if the wait
// for a synchronous standby was canceled, a failover can lose the write. The error then
// says that the outcome is unknown. All other errors of a write mean that it has stored
// nothing.
//
// # Failures
//
// A call that has stored nothing and whose connection is lost is repeated with another
// connection, and so is one that met a deadlock. When a connection is lost, hangs, or finds
// its server read-only, all of them are replaced, at most once a second. So a Store
// recovers from a restart or a failover by itself. Errors that can pass wrap
// [store.ErrUnavailable]. No error has the password.
//
// If the server has too many connections, calls share those that there are. A server that
// is read-only answers reads, but [Store.Ping] returns an error.
//
// # Locks
//
// Requests with one idempotency key wait for each other, with an advisory lock. A pet with a
// condition, and the first key, lock their table against other writes. Changes of keys
// wait for each other at their end, so that the IDs in the audit log are in the order in
// which the entries were committed. [Store.Import] locks all tables against writes.
//
// # Upgrades
//
// [Open] creates the tables in an empty schema and upgrades those of an older version, and
// [Migrate] does so where the servers may not. Each step is a transaction, and an advisory
// lock keeps servers that start together apart. Tables of another program are refused and
// not changed.
//
// Several versions of the program can use one database. A new version only adds to the
// tables, with defaults, and a later one removes what is no longer used. The table
// petstore_schema has the oldest version of the schema whose programs still work. An older
// program refuses to start, and its Ping fails, only if it is older than that.
package postgres
