package config

import (
	"fmt"
	"io"
)

// A Secret is text that does not show by accident: it prints, logs and encodes as
// "[redacted]", or as nothing if it is empty.
type Secret string

// Reveal returns the text.
func (s Secret) Reveal() string { return string(s) }

func (s Secret) redacted() string {
	if s == "" {
		return ""
	}
	return "[redacted]"
}

// Format writes what String returns, for every verb.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, s.redacted()) }

// String returns "[redacted]", or "" if s is empty.
func (s Secret) String() string { return s.redacted() }

// MarshalText returns what String returns. It also serves JSON and log/slog.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.redacted()), nil }
