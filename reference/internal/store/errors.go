package store

import "errors"

// Errors that callers branch on. They come wrapped with what was being done.
var (
	// ErrNotFound: there is no such pet or key.
	ErrNotFound = errors.New("not found")

	// ErrInvalid: the value does not keep the rules that its type states.
	ErrInvalid = errors.New("invalid")

	// ErrExists: a key with this digest is stored already, or a first key was
	// wanted and there is one.
	ErrExists = errors.New("exists already")

	// ErrInactive: the key is revoked or has expired.
	ErrInactive = errors.New("revoked or expired")

	// ErrUnavailable: the database cannot serve the call at present. It is
	// locked, full, unreachable or closed. The call may be repeated later.
	ErrUnavailable = errors.New("database unavailable")
)
