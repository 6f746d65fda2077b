package apikey

import (
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
)

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
