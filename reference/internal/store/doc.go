// Package store is the vocabulary of what the service keeps: pets, API keys,
// the use of deprecated operations, and the state of the embedded rate limiter. It holds no SQL; package sqlite implements it, and any other
// implementation proves itself with the suite in storetest.
//
// The interfaces are small, so that a consumer asks for what it uses:
//
//	func NewListPets(pets store.Pets) http.Handler
//
// What every implementation promises:
//
//   - A write that returned nil is durable: it survives a crash of the process
//     and of the machine. [Usage] alone promises less.
//   - A write that returned an error has stored nothing, with one exception
//     that cannot be closed: when the commit itself fails, or the connection to
//     the database breaks during it, whether it took place is unknown. Such an
//     error wraps [ErrUnavailable].
//   - What one handle has written, every handle on the same database reads, in
//     this process and in others. Nothing is cached.
//   - All methods may be called by any number of goroutines at once, until
//     Close.
//   - A context that ends makes a call return its error. A write that is
//     already under way is waited for, so that its outcome is known.
//   - Times are kept to the microsecond, in UTC; what is finer is cut off.
//
// Errors wrap [ErrNotFound], [ErrInvalid], [ErrExists], [ErrInactive] or
// [ErrUnavailable] where a caller may want to branch; they name no secrets.
package store
