package memory

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"
)

// A hashKey is the secret under which subjects are hashed. An engine keeps 64
// bits of hash for a subject in place of its name. One bit of them tells accounts
// from conduct: among n subjects, the chance that any two share an account is
// about n²/2⁶⁴, one in eighteen million at a million. The key is random for each
// engine, so that clients cannot look for two subjects that collide. It can be kept
// over a restart, which is not possible with a key of hash/maphash.
type hashKey [4]uint64

const secretSize = 32

// newHashKey returns the key of a secret, or a random one if there is no secret.
func newHashKey(secret []byte) (k hashKey) {
	var seed [secretSize]byte
	if copy(seed[:], secret) == 0 {
		rand.Read(seed[:]) // never fails; see crypto/rand
	}
	for i := range k {
		k[i] = binary.LittleEndian.Uint64(seed[8*i:])
	}
	return k
}

// Secret returns the key under which the engine hashes subjects. Pass it in
// [Options] to an engine that is to load what this one saved. Keep it secret: with
// it, a client can find subjects that share their usage.
func (l *Limiter) Secret() []byte {
	var b []byte
	for _, word := range l.key {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	return b
}

// sum hashes a subject by folded multiplication: eight bytes at a time are mixed
// with secret words, multiplied in pairs to 128 bits, and the halves combined. Two
// lanes, which do not wait for each other, take 16 bytes of 32 each. Every
// constant is secret, so that no input can make a factor zero by design. The
// result is even: odd hashes belong to conduct. It is never zero, which marks an
// empty slot.
func (k *hashKey) sum(s string) uint64 {
	a, b := k[0], k[1]
	length := uint64(len(s))
	for len(s) > 32 {
		a = fold(load64(s)^a, load64(s[8:])^k[2])
		b = fold(load64(s[16:])^b, load64(s[24:])^k[3])
		s = s[32:]
	}
	switch n := len(s); {
	case n > 16:
		a = fold(load64(s)^a, load64(s[8:])^k[2])
		b = fold(load64(s[n-16:])^b, load64(s[n-8:])^k[3])
	case n >= 8:
		a = fold(load64(s)^a, load64(s[n-8:])^k[2])
	case n >= 4:
		a = fold(load32(s)^a, load32(s[n-4:])^k[2])
	case n > 0:
		a = fold(uint64(s[0])<<16^uint64(s[n/2])<<8^uint64(s[n-1])^a, k[2])
	}
	// The length goes in last. It must not meet the words of the string in one
	// place: there, a byte could make up for it.
	return max(accountHash(fold(a^k[3], b^k[0]^length)), 2)
}

// fold multiplies to 128 bits and combines the halves.
func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

func load64(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

func load32(s string) uint64 {
	_ = s[3]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24
}
