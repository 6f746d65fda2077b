package apikey

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// A Digest is the SHA-256 of a whole key, which a service stores instead of the key. It
// need not be secret: a key cannot be computed from its digest, and has too many random
// bits to be guessed, so a slow hash, as for passwords, is not needed. A store looks a
// key up by its digest, and need not compare digests in constant time, because a client
// cannot find a key for a digest of its choice.
type Digest [sha256.Size]byte

// DigestOf returns the digest of a key.
func DigestOf(key string) Digest {
	if len(key) > maxKeyLen {
		return sha256.Sum256([]byte(key))
	}
	// Converting the string would put a copy on the heap.
	var buf [maxKeyLen]byte
	return sha256.Sum256(buf[:copy(buf[:], key)])
}

// String returns the digest in 64 lower-case hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText returns the text of String.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads 64 hexadecimal digits in either case.
func (d *Digest) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(d)) {
		return fmt.Errorf("apikey: a digest must have %d hexadecimal digits, got %d characters", hex.EncodedLen(len(d)), len(text))
	}
	var read Digest
	if _, err := hex.Decode(read[:], text); err != nil {
		return fmt.Errorf("apikey: a digest must have only hexadecimal digits: %w", err)
	}
	*d = read
	return nil
}
