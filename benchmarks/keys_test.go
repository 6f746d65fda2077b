package benchmarks

import (
	"strings"
	"unsafe"
)

const (
	keyPrefix = "owner-of-a-key-whose-name-is-"
	keySize   = 45
)

// A keyMaker makes keys in place.
type keyMaker [keySize]byte

func newKeyMaker() *keyMaker {
	k := new(keyMaker)
	copy(k[:], keyPrefix)
	return k
}

// key returns the i-th key, which is good until the next call. No engine keeps
// it: each has met the key before, and has a copy or only a hash of it.
func (k *keyMaker) key(i uint64) string {
	i *= 0x9e3779b97f4a7c15 // odd, so that no two keys are the same
	for at := keySize - 1; at >= len(keyPrefix); at-- {
		k[at] = "0123456789abcdef"[i&15]
		i >>= 4
	}
	return unsafe.String(&k[0], len(k))
}

// newKey returns the i-th key, to be kept.
func newKey(i uint64) string { return strings.Clone(newKeyMaker().key(i)) }

func newKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = newKey(uint64(i))
	}
	return keys
}

// An order is a sequence of pseudo-random numbers, the same for each engine.
type order uint64

// next returns a number below n, which is less than 1<<32.
func (o *order) next(n uint64) uint64 {
	*o = *o*6364136223846793005 + 1442695040888963407
	return uint64(*o>>32) * n >> 32
}
