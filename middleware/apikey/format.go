package apikey

import (
	"crypto/rand"
	"fmt"
	"hash/crc32"
	"strings"
)

const (
	bodyLen      = 30
	checksumLen  = 6
	maxPrefixLen = 32
	maxKeyLen    = maxPrefixLen + bodyLen + checksumLen
)

// A Format is the form of the keys of a service. The prefix names the service and the
// kind of key. The checksum lets the verifier reject typing errors and garbage without
// a look-up, and lets a scanner tell a leaked key from other text. It is public and
// does not protect against forgery.
//
//	key      = prefix body checksum
//	prefix   = as configured, such as "pet_live_"
//	body     = 30( ALPHA / DIGIT )   ; random
//	checksum = 6( ALPHA / DIGIT )    ; CRC-32 (IEEE) of prefix and body, in base 62
//
// The digits of the checksum are 0-9, A-Z, a-z in this order, the highest first,
// with leading zeros. Every key is a b64token (RFC 6750 section 2.1), and a double
// click selects all of it. A scanner finds keys by the regular expression of their prefix
// and [0-9A-Za-z]{36}.
//
// A Format is made by [NewFormat], never changes, and is safe for concurrent use.
// The zero Format is not valid.
type Format struct {
	prefix string
	crc    uint32 // the state of the checksum after the prefix
}

// NewFormat returns the format of keys that begin with prefix, such as "pet_live_". A
// prefix is one or more words of letters and digits, each followed by an underscore. It
// begins with a letter and has 2 to 32 characters.
func NewFormat(prefix string) (*Format, error) {
	if !isPrefix(prefix) {
		return nil, fmt.Errorf("apikey: the prefix must have 2 to %d characters, begin with a letter, "+
			"and consist of words of letters and digits, each followed by _, such as pet_live_, got %q", maxPrefixLen, prefix)
	}
	return &Format{prefix: prefix, crc: checksum(^uint32(0), prefix)}, nil
}

func isPrefix(s string) bool {
	if len(s) < 2 || len(s) > maxPrefixLen || !strings.HasSuffix(s, "_") || '0' <= s[0] && s[0] <= '9' {
		return false
	}
	for i := range len(s) {
		switch {
		case isAlphanumeric(s[i]):
		case s[i] == '_' && i > 0 && s[i-1] != '_':
		default:
			return false
		}
	}
	return true
}

// Generate returns a new key, from crypto/rand.
func (f *Format) Generate() Secret {
	key := make([]byte, 0, maxKeyLen)
	key = append(key, f.prefix...)
	key = appendRandom(key, bodyLen)
	key = appendNumber(key, ^checksum(f.crc, string(key[len(f.prefix):])))
	text := string(key)
	return Secret{key: func() string { return text }}
}

// Check reports whether key has this format and the right checksum. It does not say
// that the key was ever issued. It does not allocate.
func (f *Format) Check(key string) bool {
	if !f.hasForm(key) {
		return false
	}
	rest := key[len(f.prefix):]
	for i := range len(rest) {
		if !isAlphanumeric(rest[i]) {
			return false
		}
	}
	var want [checksumLen]byte
	appendNumber(want[:0], ^checksum(f.crc, rest[:bodyLen]))
	return rest[bodyLen:] == string(want[:])
}

// hasForm reports whether key has the length and the prefix of this format.
func (f *Format) hasForm(key string) bool {
	return len(key) == len(f.prefix)+bodyLen+checksumLen && strings.HasPrefix(key, f.prefix)
}

// checksum continues a CRC-32 (IEEE). Its first state and its last result are inverted.
// [crc32.Update] would need a copy of the string on the heap.
func checksum(crc uint32, s string) uint32 {
	for i := range len(s) {
		crc = crc32.IEEETable[byte(crc)^s[i]] ^ crc>>8
	}
	return crc
}

// alphabet is in the order of ASCII, so that texts of numbers of equal length sort like
// the numbers.
const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// appendRandom appends n characters of the alphabet, all equally likely.
func appendRandom(dst []byte, n int) []byte {
	var random [64]byte
	for n > 0 {
		rand.Read(random[:]) // never fails
		for _, b := range random {
			// Six bits are 0 to 63. Modulo 62 would favour two characters, so two values
			// are skipped.
			if b &= 63; b < 62 && n > 0 {
				dst = append(dst, alphabet[b])
				n--
			}
		}
	}
	return dst
}

// appendNumber appends v as 6 digits, the highest first. 62^6 is more than 2^32.
func appendNumber(dst []byte, v uint32) []byte {
	var digits [checksumLen]byte
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = alphabet[v%62]
		v /= 62
	}
	return append(dst, digits[:]...)
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// NewKeyID returns a public name for a new key: "key_" and 16 random letters and
// digits, which reveal nothing about the key.
func NewKeyID() string {
	return string(appendRandom([]byte("key_"), 16))
}
