package store

import "errors"

// Errors that callers branch on. They are wrapped with what the call was doing.
var (
	// ErrNotFound: there is no such pet or key.
	ErrNotFound = errors.New("not found")

	// ErrInvalid: the value breaks a rule of its type.
	ErrInvalid = errors.New("invalid")

	// ErrExists: a key with this digest exists, or the first key does.
	ErrExists = errors.New("exists already")

	// ErrInactive: the key is revoked or has expired.
	ErrInactive = errors.New("revoked or expired")

	// ErrMismatch: the idempotency key was used for another request.
	ErrMismatch = errors.New("used for another request")

	// ErrCondition: the condition of a write is false.
	ErrCondition = errors.New("condition is false")

	// ErrUnavailable: the database is locked, full, unreadable or closed. A later
	// call can succeed.
	ErrUnavailable = errors.New("database unavailable")
)
