package store

// A PetsVersioner is a [Pets] that knows cheaply whether pets may have changed, so that
// a caller can keep what it made of them. It is optional.
type PetsVersioner interface {
	// PetsVersion returns a number that stands for what is stored. Two calls return the
	// same number only if no process has committed a write between them: whatever was
	// read after the first call is what would be read after the second one. The number
	// may change without a write, and is neither ordered nor stored. It costs far less
	// than a query.
	//
	// If ok is false, the store cannot tell at the moment, and the caller must read.
	PetsVersion() (version uint64, ok bool)
}
