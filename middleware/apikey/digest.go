package apikey

import (
	"crypto/sha256"
	"database/sql/driver"
	"encoding/hex"
	"fmt"
)

// A Digest is the SHA-256 of a whole key, which a service stores instead of the key. It need
// not be secret. A key cannot be computed from its digest, and has too many random bits to be
// guessed, so a slow hash, as for passwords, is not needed. A store looks a key up by its
// digest, and need not compare digests in constant time, because a client cannot find a key for
// a digest of its choice.
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

// Value returns the digest as 32 bytes, for a column such as BLOB, BYTEA or BINARY(32). It
// makes a Digest a [driver.Valuer]. For a column of text, pass fmt.Sprintf("%x", digest) to
// the statement instead: some databases never find bytes equal to text.
func (d Digest) Value() (driver.Value, error) { return d[:], nil }

// Scan reads a digest from a column: 32 bytes, or a text of 64 hexadecimal digits in
// either case. It makes a *Digest a sql.Scanner. Any other value is an error, as is NULL,
// and leaves d unchanged.
func (d *Digest) Scan(src any) error {
	var column []byte
	switch src := src.(type) {
	case []byte:
		column = src
	case string:
		column = []byte(src)
		if len(src) == len(d) {
			return fmt.Errorf("apikey: cannot read a digest from a text of %d bytes: want %d hexadecimal digits, or a column of bytes",
				len(d), hex.EncodedLen(len(d)))
		}
	default:
		return fmt.Errorf("apikey: cannot read a digest from a column of type %T: want bytes or text", src)
	}
	if len(column) == hex.EncodedLen(len(d)) {
		decoded, err := hex.AppendDecode(nil, column)
		if err != nil {
			return fmt.Errorf("apikey: cannot read a digest: %w", err)
		}
		column = decoded
	}
	if len(column) != len(d) {
		return fmt.Errorf("apikey: a digest must have %d bytes or %d hexadecimal digits, got a column of %d bytes",
			len(d), hex.EncodedLen(len(d)), len(column))
	}
	copy(d[:], column)
	return nil
}

const redacted = "[redacted]"

// A Secret is a key that is never shown by accident: printing, logging and encoding it
// in any way gives "[redacted]", also where it is a field of another value. Only
// [Secret.Reveal] returns the key. A Secret cannot be compared with ==. The zero Secret
// holds no key.
type Secret struct {
	// A string here would be printed by package fmt where the Secret is in an
	// unexported field, where no method is called. A function prints as an address.
	key func() string
}

// Reveal returns the key, to be shown once to its owner.
func (s Secret) Reveal() string {
	if s.key == nil {
		return ""
	}
	return s.key()
}

// Digest returns the digest of the key, which is stored instead of the key.
func (s Secret) Digest() Digest { return DigestOf(s.Reveal()) }

// LastFour returns the last four characters of the key, by which people tell
// their keys apart. They are a part of the checksum, and reveal nothing useful about
// the rest.
func (s Secret) LastFour() string {
	key := s.Reveal()
	return key[max(0, len(key)-4):]
}

// Format writes "[redacted]" for every verb of package fmt.
func (Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, redacted) }

// MarshalText returns "[redacted]", for encoders and for package slog.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
