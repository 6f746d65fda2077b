package jsonbody

import (
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

func setBool(dst reflect.Value, v any) *problem {
	b, ok := v.(bool)
	if !ok {
		return &problem{detail: "must be a boolean"}
	}
	dst.SetBool(b)
	return nil
}

func setString(dst reflect.Value, v any) *problem {
	s, ok := v.(string)
	if !ok {
		return &problem{detail: "must be a string"}
	}
	dst.SetString(s)
	return nil
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
	s, ok := v.(string)
	if !ok {
		return &problem{detail: "must be a string"}
	}
	if err := dst.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s)); err != nil {
		return &problem{detail: "is not valid"}
	}
	return nil
}

// setRat is setText for a big.Rat, of which a few bytes with an exponent take long. As
// text, a big.Rat has none.
func setRat(dst reflect.Value, v any) *problem {
	if s, ok := v.(string); ok && strings.ContainsAny(s, "eEpP") {
		return &problem{detail: "is not valid"}
	}
	return setText(dst, v)
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

// setNumber keeps the token as it was sent.
func setNumber(dst reflect.Value, v any) *problem {
	n, ok := v.(json.Number)
	if !ok {
		return &problem{detail: "must be a number"}
	}
	dst.SetString(n.String())
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
	if p != nil {
		return p
	}
	dst.Addr().Interface().(*big.Int).SetString(digits, 10)
	return nil
}

// integer returns the digits of a number without a fraction.
func integer(v any) (string, *problem) {
	n, ok := v.(json.Number)
	if !ok {
		return "", &problem{detail: "must be an integer"}
	}
	d := newDecimal(n.String())
	if d.exponent < 0 {
		return "", &problem{detail: "must be an integer"}
	}
	return d.integer(), nil
}

func setFloat(dst reflect.Value, v any) *problem {
	n, ok := v.(json.Number)
	if !ok {
		return &problem{detail: "must be a number"}
	}
	f, err := strconv.ParseFloat(n.String(), dst.Type().Bits())
	if err != nil {
		return &problem{detail: "is out of range"}
	}
	dst.SetFloat(f)
	return nil
}
