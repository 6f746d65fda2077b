package jsonbody_test

import (
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/middleware/jsonbody"
)

// Values are equal as JSON Schema defines it (2020-12 core section 4.2.2), not as text.
func TestEnumIsByValue(t *testing.T) {
	body := bodyOf[any](t, `{"enum": [100, 0, 0.5, "1", true, null, [1, {"a": 2, "b": 3}], {"a": [1.0]}, {}, []]}`, jsonbody.Options{})
	for text, allowed := range map[string]bool{
		"100": true, "1e2": true, "100.00": true, "0": true, "-0": true, "0e5": true, "5e-1": true, `"1"`: true, `"\u0031"`: true,
		"true": true, "null": true, `[1,{"b":3,"a":2}]`: true, `[1.0,{"a":2,"b":30e-1}]`: true, `{"a":[1]}`: true, "{}": true, "[]": true,
		"-100": false, "1": false, "0.50000000000000000000001": false, `"100"`: false, `"01"`: false, `""`: false, "false": false,
		`[1]`: false, `[{"a":2,"b":3},1]`: false, `[1,{"a":2,"b":3},1]`: false, `{"a":1}`: false, `{"a":[1],"b":1}`: false, `{"b":[1]}`: false, "[[]]": false,
		`"n"`: false, `"true"`: false, `"1:1"`: false,
	} {
		_, err := body.Parse([]byte(text))
		if allowed && err != nil {
			t.Errorf("%s is refused: %v", text, err)
		} else if !allowed && (err == nil || !strings.Contains(err.Error(), "must be one of 100, 0, 0.5, ")) {
			t.Errorf("%s: error %v, want one that names the values", text, err)
		}
	}
}
