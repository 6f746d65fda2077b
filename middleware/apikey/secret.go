package apikey

import (
	"fmt"
	"log/slog"
)

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
