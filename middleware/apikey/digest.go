package apikey

import (
	"crypto/sha256"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
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

// Value returns the digest as 32 bytes, for a column such as BLOB, BYTEA or BINARY(32). It
// makes a Digest a [driver.Valuer]. For a column of text, pass [Digest.String] to the
// statement instead: some databases never find bytes equal to text.
func (d Digest) Value() (driver.Value, error) { return d[:], nil }

// Scan reads a digest from a column: 32 bytes, or a text of 64 hexadecimal digits in
// either case. It makes a *Digest a sql.Scanner. NULL is an error, as is any other value,
// and leaves d unchanged.
func (d *Digest) Scan(src any) error {
	switch src := src.(type) {
	case []byte:
		if len(src) == len(d) {
			copy(d[:], src)
			return nil
		}
		return d.scanText(src)
	case string:
		if len(src) == len(d) {
			return fmt.Errorf("apikey: cannot read a digest from a text of %d bytes: want %d hexadecimal digits, or a column of bytes",
				len(d), hex.EncodedLen(len(d)))
		}
		return d.scanText([]byte(src))
	case nil:
		return errors.New("apikey: cannot read a digest from NULL")
	default:
		return fmt.Errorf("apikey: cannot read a digest from a column of type %T: want bytes or text", src)
	}
}

func (d *Digest) scanText(text []byte) error {
	if len(text) != hex.EncodedLen(len(d)) {
		return fmt.Errorf("apikey: a digest must have %d bytes or %d hexadecimal digits, got a column of %d bytes",
			len(d), hex.EncodedLen(len(d)), len(text))
	}
	return d.UnmarshalText(text)
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

func newSecret(key string) Secret {
	return Secret{key: func() string { return key }}
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

// String returns "[redacted]".
func (Secret) String() string { return redacted }

// GoString returns "[redacted]".
func (Secret) GoString() string { return redacted }

// Format writes "[redacted]" for every verb.
func (Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, redacted) }

// MarshalJSON returns "[redacted]" as a JSON string.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalText returns "[redacted]".
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue returns "[redacted]".
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
