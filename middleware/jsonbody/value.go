package jsonbody

import (
	"cmp"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"
)

// as returns a value of parse as the Go type that such values have.
func as[T any](v any, phrase string) (T, *problem) {
	value, ok := v.(T)
	if !ok {
		return value, &problem{detail: "must be " + phrase}
	}
	return value, nil
}

// setAs returns the setter of a type that takes values of the Go type T as they are.
func setAs[T any](phrase string, set func(dst reflect.Value, value T)) setter {
	return func(dst reflect.Value, v any) *problem {
		value, p := as[T](v, phrase)
		if p == nil {
			set(dst, value)
		}
		return p
	}
}

// setBytes reads base64 as encoding/json writes it. Line breaks, which package base64
// skips, and bits that would be lost are refused (RFC 4648 sections 3.3 and 3.5).
func setBytes(dst reflect.Value, v any) *problem {
	s, ok := v.(string)
	b, err := base64.StdEncoding.Strict().DecodeString(s)
	if !ok || err != nil || strings.ContainsAny(s, "\r\n") {
		return &problem{detail: "must be a base64 string"}
	}
	dst.SetBytes(b)
	return nil
}

// setText passes a string to UnmarshalText. Its error is not sent to the client, since
// it often contains the string.
func setText(dst reflect.Value, v any) *problem {
	s, p := as[string](v, "a string")
	if p != nil {
		return p
	}
	if err := dst.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s)); err != nil {
		return &problem{detail: "is not valid"}
	}
	return nil
}

// setJSON passes a value to UnmarshalJSON, as its text. It refuses objects and arrays:
// UnmarshalJSON usually calls encoding/json, which would match a member that the schema
// leaves unchecked because its name differs in case.
func setJSON(dst reflect.Value, v any) *problem {
	switch v.(type) {
	case map[string]any, []any:
		return &problem{detail: "must not be an object or an array"}
	}
	text, _ := json.Marshal(v) // never fails: v is from JSON
	if err := dst.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(text); err != nil {
		return &problem{detail: "is not valid"}
	}
	return nil
}

func setAny(dst reflect.Value, v any) *problem {
	if v == nil {
		dst.SetZero()
	} else {
		dst.Set(reflect.ValueOf(v))
	}
	return nil
}

func setFloat(dst reflect.Value, v any) *problem {
	n, p := as[json.Number](v, "a number")
	if p != nil {
		return p
	}
	f, err := strconv.ParseFloat(n.String(), dst.Type().Bits())
	if err != nil {
		return &problem{detail: "is out of range"}
	}
	dst.SetFloat(f)
	return nil
}

func setInt(dst reflect.Value, v any) *problem {
	digits, p := integer(v)
	if p != nil {
		return p
	}
	bits := dst.Type().Bits()
	n, err := strconv.ParseInt(digits, 10, bits)
	if err != nil {
		return &problem{detail: fmt.Sprintf("must be from %d to %d", int64(math.MinInt64)>>(64-bits), int64(math.MaxInt64)>>(64-bits))}
	}
	dst.SetInt(n)
	return nil
}

func setUint(dst reflect.Value, v any) *problem {
	digits, p := integer(v)
	if p != nil {
		return p
	}
	bits := dst.Type().Bits()
	n, err := strconv.ParseUint(digits, 10, bits)
	if err != nil {
		return &problem{detail: fmt.Sprintf("must be from 0 to %d", uint64(math.MaxUint64)>>(64-bits))}
	}
	dst.SetUint(n)
	return nil
}

func setBigInt(dst reflect.Value, v any) *problem {
	digits, p := integer(v)
	if p == nil {
		dst.Addr().Interface().(*big.Int).SetString(digits, 10)
	}
	return p
}

// integer returns the digits of a number without a fraction.
func integer(v any) (string, *problem) {
	n, p := as[json.Number](v, "an integer")
	if p != nil {
		return "", p
	}
	d := newDecimal(n.String())
	if d.exponent < 0 {
		return "", &problem{detail: "must be an integer"}
	}
	return d.integer(), nil
}

// Limits of a number token, which RFC 8259 section 6 allows. The validator converts
// every number to a fraction of big integers that are as long as the exponent is large:
// 1e1000000 takes tens of milliseconds. An IEEE 754 double needs no larger exponent, and
// an integer of 256 bits 78 digits.
const (
	maxNumber   = 100 // bytes
	maxExponent = 308 // and not below -308
)

// checkNumber returns what is wrong with a token of the grammar, or "".
func checkNumber(token string) string {
	if len(token) > maxNumber {
		return "is a number of more than " + strconv.Itoa(maxNumber) + " characters"
	}
	if i := strings.IndexAny(token, "eE"); i >= 0 {
		digits := strings.TrimLeft(token[i+1:], "+-")
		if n, err := strconv.Atoi(digits); err != nil || n > maxExponent {
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
	s := cmp.Or(d.digits+strings.Repeat("0", d.exponent), "0")
	if d.negative {
		s = "-" + s
	}
	return s
}
