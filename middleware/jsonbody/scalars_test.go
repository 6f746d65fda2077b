package jsonbody_test

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/middleware/jsonbody"
)

const (
	integerA = `{"properties":{"A":{"type":"integer"}}}`
	numberA  = `{"properties":{"A":{"type":"number"}}}`
	stringA  = `{"properties":{"A":{"type":"string"}}}`
	anyA     = `{"properties":{"A":{}}}`
	arrayA   = `{"properties":{"A":{"type":"array","items":{"type":"integer"}}}}`
)

func TestNumbers(t *testing.T) {
	type (
		single  struct{ A float32 }
		bigInt  struct{ A big.Int }
		pointer struct{ A *big.Int }
	)
	googol, _ := new(big.Int).SetString("1"+strings.Repeat("0", 100), 10)
	run(t, []rule{
		{"uint64 above 2^53", reads(integerA, `{"A":9007199254740993}`, struct{ A uint64 }{1<<53 + 1})},
		{"int64 below -2^53", reads(integerA, `{"A":-9007199254740993}`, struct{ A int64 }{-1<<53 - 1})},
		{"number as sent", reads(numberA, `{"A":1.10}`, struct{ A json.Number }{"1.10"})},
		{"number of a type of its own", newRefuses[struct{ A number }](numberA, "field A: type jsonbody_test.number cannot hold")},

		{"float32", reads(numberA, `{"A":0.1}`, single{0.1})},
		{"largest float32", reads(numberA, `{"A":3.4028234663852886e38}`, single{math.MaxFloat32})},
		{"float32 overflow", refuses[single](numberA, `{"A":3.5e38}`, "/A", "is out of range")},
		{"float32 underflow", reads(numberA, `{"A":1e-50}`, single{})},
		{"float32 for a string", newRefuses[single](stringA, "field A: type float32 cannot hold")},

		{"big.Int", reads(integerA, `{"A":18446744073709551616}`, bigInt{*new(big.Int).Lsh(big.NewInt(1), 64)})},
		{"negative big.Int", reads(integerA, `{"A":-18446744073709551616}`, bigInt{*new(big.Int).Neg(new(big.Int).Lsh(big.NewInt(1), 64))})},
		{"big.Int by pointer", reads(integerA, `{"A":12345678901234567890123456789012}`, pointer{decimal("12345678901234567890123456789012")})},
		{"integer of 256 bits", reads(integerA, `{"A":115792089237316195423570985008687907853269984665640564039457584007913129639935}`,
			pointer{decimal("115792089237316195423570985008687907853269984665640564039457584007913129639935")})},
		{"nil for a pointer to big.Int", reads(anyA, `{"A":null}`, pointer{})},
		{"null for big.Int", refuses[bigInt](anyA, `{"A":null}`, "/A", "must be an integer")},
		{"fraction for big.Int", refuses[pointer](numberA, `{"A":1.5}`, "/A", "must be an integer")},
		{"string for big.Int", refuses[pointer](anyA, `{"A":"1"}`, "/A", "must be an integer")},
		{"schema of strings for big.Int", newRefuses[pointer](stringA, "field A: type *big.Int cannot hold")},
		{"big.Float and big.Rat, as encoding/json writes them", reads(`{"properties":{"A":{"type":"string"},"B":{"type":"string"}}}`, `{"A":"0.5","B":"1/3"}`, struct {
			A *big.Float
			B *big.Rat
		}{new(big.Float).SetPrec(64).SetFloat64(0.5), big.NewRat(1, 3)})},
	})

	// big.Rat takes 40 milliseconds for each of these.
	run(t, []rule{
		{"exponent of a big.Rat", refuses[struct{ A *big.Rat }](stringA, `{"A":"1e999999"}`, "/A", "is not valid")},
		{"binary exponent of a big.Rat", refuses[struct{ A big.Rat }](stringA, `{"A":"1P-9999999"}`, "/A", "is not valid")},
	})

	// encoding/json refuses an exponent in an integer. Here, integers are read by value.
	got, err := bodyOf[pointer](t, integerA, jsonbody.Options{}).Parse([]byte(`{"A":1e100}`))
	if err != nil || got.A.Cmp(googol) != 0 {
		t.Errorf("1e100 is read as %v, %v", got.A, err)
	}
}

func TestBytesAndArrays(t *testing.T) {
	type (
		bytes  struct{ A []byte }
		named  struct{ A octets }
		pair   struct{ A [2]int }
		digest struct{ A [4]byte }
	)
	run(t, []rule{
		{"bytes", reads(stringA, `{"A":"AP+/"}`, bytes{[]byte{0, 0xff, 0xbf}})},
		{"no bytes", reads(stringA, `{"A":""}`, bytes{[]byte{}})},
		{"nil bytes", reads(anyA, `{"A":null}`, bytes{})},
		{"bytes of a type of its own", reads(stringA, `{"A":"YQ=="}`, named{octets("a")})},
		{"bytes from an array", reads(arrayA, `{"A":[0,255]}`, bytes{[]byte{0, 255}})},
		{"no byte", refuses[bytes](arrayA, `{"A":[0,256]}`, "/A/1", "must be from 0 to 255")},
		{"no base64", refuses[bytes](stringA, `{"A":"a"}`, "/A", "must be a base64 string")},
		{"base64 without padding", refuses[bytes](stringA, `{"A":"YQ"}`, "/A", "must be a base64 string")},
		{"base64 for URLs", refuses[bytes](stringA, `{"A":"AP-_"}`, "/A", "must be a base64 string")},
		{"base64 with bits that are lost", refuses[bytes](stringA, `{"A":"YR=="}`, "/A", "must be a base64 string")},
		{"base64 in lines", refuses[bytes](stringA, `{"A":"YWFh\nYWFh"}`, "/A", "must be a base64 string")},
		{"number for bytes", refuses[bytes](anyA, `{"A":1}`, "/A", "must be a base64 string")},
		{"schema of numbers for bytes", newRefuses[bytes](integerA, "field A: type []uint8 cannot hold")},

		{"array", reads(arrayA, `{"A":[1,2]}`, pair{[2]int{1, 2}})},
		{"array with fewer elements", reads(arrayA, `{"A":[1]}`, pair{[2]int{1, 0}})},
		{"array with more elements", refuses[pair](arrayA, `{"A":[1,2,3]}`, "/A", "must have at most 2 items")},
		{"array of one with two", refuses[struct{ A [1]int }](arrayA, `{"A":[1,2]}`, "/A", "must have at most 1 item")},
		{"null for an array", refuses[pair](anyA, `{"A":null}`, "/A", "must be an array")},
		{"wrong element of an array", refuses[pair](anyA, `{"A":[1,"2"]}`, "/A/1", "must be an integer")},
		{"array of bytes", reads(arrayA, `{"A":[1,2,3,255]}`, digest{[4]byte{1, 2, 3, 255}})},
		{"schema of strings for an array of bytes", newRefuses[digest](stringA, "field A: type [4]uint8 cannot hold")},
		{"schema with other items", newRefuses[pair](`{"properties":{"A":{"items":{"type":"string"}}}}`, "field A: type int cannot hold")},
	})
}

type (
	number json.Number
	octets []byte
)

func decimal(digits string) *big.Int {
	n, _ := new(big.Int).SetString(digits, 10)
	return n
}
