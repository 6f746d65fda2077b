package apikey

// Remembered returns how many answers v holds.
func (v *Verifier[P]) Remembered() (valid, invalid int) {
	for i := range v.shards {
		s := &v.shards[i]
		s.mu.Lock()
		valid += len(s.valid.young) + len(s.valid.old)
		invalid += len(s.invalid.young) + len(s.invalid.old)
		s.mu.Unlock()
	}
	return valid, invalid
}

// UnderWay returns how many look-ups can be joined.
func (v *Verifier[P]) UnderWay() (n int) {
	for i := range v.shards {
		s := &v.shards[i]
		s.mu.Lock()
		n += len(s.lookups)
		s.mu.Unlock()
	}
	return n
}

// Shrink makes the cache of v hold fewer keys, and fewer look-ups of unknown keys run.
func (v *Verifier[P]) Shrink(capacity, unknownLookups int) {
	v.generation = (capacity + 2*shardCount - 1) / (2 * shardCount)
	v.unknown = make(chan struct{}, unknownLookups)
}

var ErrMalformed = errMalformed
