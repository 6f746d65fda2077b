package jsonbody_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/jsonbody"
)

func TestParseRefusesWhatIsNotJSON(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", "The request body is empty."},
		{"white space only", " \n", "The request body is empty."},
		{"byte order mark", "\uFEFF{}", "The request body begins with a byte order mark, which JSON does not allow."},
		{"not UTF-8", "\"\xff\"", "The request body is not valid UTF-8."},
		{"surrogate in UTF-8", "\"\xed\xa0\x80\"", "The request body is not valid UTF-8."},
		{"high surrogate alone", `"a\ud800"`, "The request body has an unpaired surrogate at offset 2."},
		{"low surrogate alone", `"\udc00"`, "The request body has an unpaired surrogate at offset 1."},
		{"surrogates in the wrong order", `"\udc00\ud800"`, "The request body has an unpaired surrogate at offset 1."},
		{"high surrogate before another escape", `"\ud800\n"`, "The request body has an unpaired surrogate at offset 1."},
		{"high surrogate twice", `"\ud800\ud800"`, "The request body has an unpaired surrogate at offset 1."},
		{"control character in a string", "\"a\nb\"", "The request body is not valid JSON: unexpected character at offset 2."},
		{"open object", `{"a":1`, "The request body is not valid JSON: it ends too early."},
		{"trailing comma", `{"a":1,}`, "The request body is not valid JSON: unexpected character at offset 7."},
		{"trailing comma in an array", `[1,]`, "The request body is not valid JSON: unexpected character at offset 3."},
		{"leading zero", `01`, "The request body has more data after its JSON value, at offset 1."},
		{"two values", `{"a":1}{"a":2}`, "The request body has more data after its JSON value, at offset 7."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := bodyOf[any](t, `{}`, jsonbody.Options{}).Parse([]byte(tt.text))
			e := refusal(t, err)
			if e.Status != 400 || e.Code != "invalid_body" || e.Message != tt.want {
				t.Errorf("got %d %s %q\nwant 400 invalid_body %q", e.Status, e.Code, e.Message, tt.want)
			}
			if len(e.Details) > 0 {
				t.Errorf("got details %v for a text that has no values", e.Details)
			}
		})
	}
}

// RFC 8259 section 4 lets the meaning of repeated names open: readers differ.
func TestParseRefusesRepeatedNames(t *testing.T) {
	for _, tt := range []struct{ text, pointer string }{
		{`{"a":1,"a":1}`, "/a"},
		{`{"a":1,"\u0061":2}`, "/a"},
		{`{"a":1,"b":{"c":[0,{"d":1,"d":2}]}}`, "/b/c/1/d"},
		{`{"":1,"":2}`, "/"},
		{`{"a/b~c":1,"a\/b~c":2}`, "/a~1b~0c"},
		{`{"é":1,"\u00e9":2}`, "/é"},
	} {
		_, err := bodyOf[any](t, `{}`, jsonbody.Options{}).Parse([]byte(tt.text))
		want := []apierror.Detail{{Pointer: tt.pointer, Detail: "occurs more than once"}}
		if diff := cmp.Diff(want, refusal(t, err).Details, anyRule); diff != "" {
			t.Errorf("%s: details (-want +got):\n%s", tt.text, diff)
		}
	}
}

func TestParseLimits(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	list := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat("0,", n), ",") + "]" }
	name := func(n int) string { return `{"a":{"` + strings.Repeat("n", n) + `":1}}` }
	for _, tt := range []struct {
		name    string
		options jsonbody.Options
		good    string
		bad     string
		want    string
	}{
		{"size", jsonbody.Options{MaxBytes: 10}, `"12345678"`, `"123456789"`,
			"The request body is larger than 10 bytes."},
		{"default size", jsonbody.Options{}, `"` + strings.Repeat("x", 65534) + `"`, `"` + strings.Repeat("x", 65535) + `"`,
			"The request body is larger than 65536 bytes."},
		{"depth", jsonbody.Options{MaxDepth: 3}, `{"a":[{"b":1}]}`, `{"a":[{"b":[]}]}`,
			"The request body is nested more than 3 levels deep."},
		{"default depth", jsonbody.Options{}, nested(16), nested(17),
			"The request body is nested more than 16 levels deep."},
		{"values", jsonbody.Options{MaxValues: 4}, `{"a":[1,2]}`, `{"a":[1,2,3]}`,
			"The request body has more than 4 values."},
		{"default values", jsonbody.Options{}, list(2499), list(2500),
			"The request body has more than 2500 values."},
		{"number", jsonbody.Options{}, "-1." + strings.Repeat("1", 97), "-1." + strings.Repeat("1", 98),
			"The request body is a number of more than 100 characters."},
		{"exponent", jsonbody.Options{}, `[1e308,1e-308,1E+308]`, `[1e309]`,
			"The request body is not valid: /0 is a number with an exponent beyond 308."},
		{"negative exponent", jsonbody.Options{}, `1e-308`, `1e-309`,
			"The request body is a number with an exponent beyond 308."},
		{"zeros of the exponent", jsonbody.Options{}, `[1e0000308,1e-0000308]`, `1e0000309`,
			"The request body is a number with an exponent beyond 308."},
		{"path", jsonbody.Options{}, "[" + name(509) + "," + name(509) + "]", name(510),
			"The request body is not valid: /a has a member with a path of more than 512 bytes."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := bodyOf[any](t, `{}`, tt.options)
			if _, err := body.Parse([]byte(tt.good)); err != nil {
				t.Errorf("Parse refused what is within the limit: %v", err)
			}
			_, err := body.Parse([]byte(tt.bad))
			if got := refusal(t, err).Message; got != tt.want {
				t.Errorf("past the limit, got message %q\nwant %q", got, tt.want)
			}
		})
	}
}
