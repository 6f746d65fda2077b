package jsonbody

import (
	"bytes"
	"strconv"
	"strings"
)

// Limits of a number token, which RFC 8259 section 6 allows. The validator converts
// every number to a fraction of big integers that are as long as the exponent is large:
// 1e1000000 takes tens of milliseconds. An IEEE 754 double needs no larger exponent, and
// an integer of 256 bits 78 digits.
const (
	maxNumber   = 100 // bytes
	maxExponent = 308 // and not below -308
)

// checkNumber returns what is wrong with a token of the grammar, or "".
func checkNumber(token []byte) string {
	if len(token) > maxNumber {
		return "is a number of more than " + strconv.Itoa(maxNumber) + " characters"
	}
	if i := bytes.IndexAny(token, "eE"); i >= 0 {
		digits := bytes.TrimLeft(token[i+1:], "+-")
		if n, err := strconv.Atoi(string(digits)); err != nil || n > maxExponent {
			return "is a number with an exponent beyond " + strconv.Itoa(maxExponent)
		}
	}
	return ""
}

// decimal is the exact value of a number token: digits times ten to the power of
// exponent. Equal numbers have equal decimals: digits neither begin nor end with
// a zero, and zero has none, no exponent and no sign.
type decimal struct {
	negative bool
	digits   string
	exponent int
}

// newDecimal takes a token that has passed checkNumber.
func newDecimal(token string) decimal {
	var d decimal
	token, d.negative = strings.CutPrefix(token, "-")
	if i := strings.IndexAny(token, "eE"); i >= 0 {
		d.exponent, _ = strconv.Atoi(token[i+1:])
		token = token[:i]
	}
	whole, fraction, _ := strings.Cut(token, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	d.digits = strings.TrimRight(digits, "0")
	if d.digits == "" {
		return decimal{}
	}
	d.exponent += len(digits) - len(d.digits) - len(fraction)
	return d
}

// integer returns the digits of d, with an exponent that is not negative, as
// strconv.ParseInt reads them. There are at most a few hundred.
func (d decimal) integer() string {
	s := d.digits + strings.Repeat("0", d.exponent)
	if s == "" {
		s = "0"
	}
	if d.negative {
		s = "-" + s
	}
	return s
}
