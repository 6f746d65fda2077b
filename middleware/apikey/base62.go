package apikey

import "crypto/rand"

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
