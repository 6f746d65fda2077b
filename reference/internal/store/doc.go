// Package store defines what the service stores: pets, API keys, the audit log, requests
// by day, the use of deprecated operations, and the state of the embedded rate limiter.
// Package sqlite implements all of it, package postgres all but [Usage]. The suite in
// storetest tests implementations.
//
// The interfaces are small, so that a consumer requires only what it uses:
//
//	func NewListPets(pets store.Pets) http.Handler
//
// Every implementation promises:
//
//   - A write that returned nil is durable: it survives a crash of the process
//     and of the machine. [Usage] alone promises less.
//   - A write that returned an error has stored nothing, with one exception: if the
//     commit fails, its outcome can be unknown. Such an error wraps [ErrUnavailable].
//   - A write is visible to every handle on the same database, in this process and in
//     others. Nothing is cached.
//   - All methods are safe for concurrent use, until Close.
//   - When its context ends, a call returns the error of the context. A write that has
//     begun finishes first, so that its outcome is known.
//   - Times are stored in microseconds and UTC; anything finer is cut off.
//
// Errors wrap [ErrNotFound], [ErrInvalid], [ErrExists], [ErrInactive], [ErrMismatch],
// [ErrCondition] or [ErrUnavailable], so that callers can branch. They contain no secrets.
package store
