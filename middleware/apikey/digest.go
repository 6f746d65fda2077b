package apikey

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// A Digest is the SHA-256 of a whole key, which is stored in its place. It is no
// secret: the key does not follow from it.
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
		return fmt.Errorf("apikey: digest of %d characters, want %d", len(text), hex.EncodedLen(len(d)))
	}
	var read Digest
	if _, err := hex.Decode(read[:], text); err != nil {
		return fmt.Errorf("apikey: digest: %w", err)
	}
	*d = read
	return nil
}
