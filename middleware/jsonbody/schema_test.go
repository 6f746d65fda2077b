package jsonbody_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/jsonbody"
)

// A message names three faults and counts the others.
func TestMessage(t *testing.T) {
	const schema = `{"maxProperties": 1, "properties": {"a": {"type": "null"}, "b": {"type": "null"},
		"c": {"type": "null"}, "d": {"type": "null"}, "e": {"type": "null"}}}`
	body := bodyOf[any](t, schema, jsonbody.Options{})
	for text, want := range map[string]string{
		`{"a":1}`:             "The request body is not valid: /a must be null.",
		`{"x":1,"y":2}`:       "The request body must have at most 1 member.",
		`{"a":1,"b":1}`:       "The request body is not valid: it must have at most 1 member; /a must be null; /b must be null.",
		`{"a":1,"b":1,"c":1}`: "The request body is not valid: it must have at most 1 member; /a must be null; /b must be null; and 1 more.",
		`{"a":1,"b":1,"c":1,"d":1,"e":1}`: "The request body is not valid: it must have at most 1 member; /a must be null; " +
			"/b must be null; and 3 more.",
	} {
		_, err := body.Parse([]byte(text))
		if got := refusal(t, err).Message; got != want {
			t.Errorf("%s: message %q\nwant %q", text, got, want)
		}
	}
}

func details(pairs ...string) []apierror.Detail {
	var all []apierror.Detail
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, apierror.Detail{Pointer: pairs[i], Detail: pairs[i+1]})
	}
	return all
}

// anyRule compares details without their rules.
var anyRule = cmpopts.IgnoreFields(apierror.Detail{}, "Rule")

// Each keyword of the draft tells in its own words what it asks for.
func TestKeywords(t *testing.T) {
	for _, tt := range []struct {
		schema, text string
		want         []apierror.Detail
	}{
		{`false`, `1`, details("", "is not allowed")},
		{`{"properties":{"a":false}}`, `{"a":1}`, details("/a", "is not allowed")},
		{`{"type":["string","null"]}`, `1`, details("", "must be a string or null")},
		{`{"type":"boolean"}`, `"true"`, details("", "must be a boolean")},
		{`{"type":"array"}`, `{}`, details("", "must be an array")},
		{`{"type":"null"}`, `0`, details("", "must be null")},
		{`{"const":{"a":[1]}}`, `{"a":[2]}`, details("", `must be {"a":[1]}`)},
		{`{"const":1}`, `1.0`, nil},
		{`{"enum":["only"]}`, `1`, details("", `must be "only"`)},
		{`{"enum":[1,"a",null]}`, `2`, details("", `must be one of 1, "a", null`)},
		{`{"enum":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21]}`, `0`, details("", `must be one of the allowed values`)},
		{`{"required":["b","a"]}`, `{"A":1}`, details("/a", "is required", "/b", "is required")},
		{`{"type":"object"}`, `null`, details("", "must be an object")},
		{`{"type":"integer"}`, `1.5`, details("", "must be an integer")},
		{`{"maximum":9223372036854775807}`, `9223372036854775808`, details("", "must be at most 9223372036854775807")},
		{`{"minimum":-9223372036854775808}`, `-9223372036854775809`, details("", "must be at least -9223372036854775808")},
		{`{"minLength":1}`, `""`, details("", "must have at least 1 character")},
		{`{"maxLength":2}`, `"abc"`, details("", "must have at most 2 characters")},
		{`{"minLength":2}`, `"é"`, details("", "must have at least 2 characters")},
		{`{"maxLength":1}`, `"😀"`, nil},
		{`{"pattern":"^[^\u0000-\u001f]*$"}`, `"a\u0000"`, details("", "must match the pattern ^[^\x00-\x1f]*$")},
		{`{"pattern":"^a$"}`, `"a\n"`, details("", "must match the pattern ^a$")},
		{`{"title":"one a","pattern":"^a$"}`, `"b"`, details("", "must be one a")},
		{`{"exclusiveMinimum":0.5}`, `0.5`, details("", "must be greater than 0.5")},
		{`{"exclusiveMaximum":10}`, `10`, details("", "must be less than 10")},
		{`{"multipleOf":0.1}`, `0.3`, nil},
		{`{"multipleOf":0.1}`, `0.35`, details("", "must be a multiple of 0.1")},
		{`{"minItems":1}`, `[]`, details("", "must have at least 1 item")},
		{`{"maxItems":1}`, `[1,2]`, details("", "must have at most 1 item")},
		{`{"uniqueItems":true}`, `[1,1.0]`, details("", "must not have duplicate items")},
		{`{"uniqueItems":true}`, `[{"a":1,"b":[-0]},{"b":[0e1],"a":10e-1}]`, details("", "must not have duplicate items")},
		{`{"uniqueItems":true}`, `[1,-1,"1",true,null,[],{},[[]],["a","b"],["a,1:b"],{"a":1},{"a":"1"},10,100,0.1]`, nil},
		{`{"uniqueItems":true}`, `[[1e1,"ab8:abcdefgh"],[1e11,"ab","abcdefgh"]]`, nil},
		{`{"items":{"uniqueItems":true}}`, `[[1,2],["a","a"]]`, details("/1", "must not have duplicate items")},
		{`{"items":{"type":"integer"}}`, `[1,"a",2,"b"]`, details("/1", "must be an integer", "/3", "must be an integer")},
		{`{"prefixItems":[{"type":"integer"}],"items":false}`, `["a",1]`, details("/0", "must be an integer", "/1", "is not allowed")},
		{`{"contains":{"type":"integer"}}`, `["a","b"]`, details("", "must have at least 1 item of the required form")},
		{`{"contains":{"type":"integer"},"maxContains":1}`, `[1,2]`, details("", "must have at most 1 item of the required form")},
		{`{"minProperties":2}`, `{"a":1}`, details("", "must have at least 2 members")},
		{`{"maxProperties":1}`, `{"a":1,"b":1}`, details("", "must have at most 1 member")},
		{`{"properties":{"a":{}},"patternProperties":{"^x-":{}},"additionalProperties":false}`, `{"a":1,"x-b":2,"c/d":3,"é ~":4}`,
			details("/c~1d", "is not allowed", "/é ~0", "is not allowed")},
		{`{"additionalProperties":{"type":"integer"}}`, `{"a%20b c":"1"}`, details("/a%20b c", "must be an integer")},
		{`{"properties":{"a":{}},"unevaluatedProperties":false}`, `{"a":1,"b":1}`, details("/b", "is not allowed")},
		{`{"propertyNames":{"pattern":"^[a-z]+$"}}`, `{"a":1,"B":1}`, details("/B", "has a name that is not allowed")},
		{`{"propertyNames":{"$ref":"#/$defs/n"},"$defs":{"n":{"maxLength":1}}}`, `{"ab":1}`, details("/ab", "has a name that is not allowed")},
		{`{"dependentRequired":{"a/b":["c","d"]}}`, `{"a/b":1,"c":1}`, details("/d", "is required")},
		{`{"dependentSchemas":{"a":{"required":["b"]}}}`, `{"a":1}`, details("/b", "is required")},
		{`{"not":{"type":"string"}}`, `"a"`, details("", "has a form that is not allowed")},
		{`{"not":{}}`, `"a"`, details("", "has a form that is not allowed")},
		{`{"allOf":[{"minLength":3},{"maxLength":1},{"minLength":3}]}`, `"ab"`,
			details("", "must have at least 3 characters", "", "must have at most 1 character")},
		{`{"anyOf":[{"type":"null"},{"type":"object","required":["a"]}]}`, `{}`, details("/a", "is required")},
		{`{"anyOf":[{"type":"null"},{"$ref":"#/$defs/s"}],"$defs":{"s":{"type":"string","maxLength":1}}}`, `"ab"`, details("", "must have at most 1 character")},
		{`{"anyOf":[{"type":"null"},{"type":"string"}]}`, `1`, details("", "must have one of the allowed forms")},
		{`{"oneOf":[{"minLength":1},{"minLength":2}]}`, `"abc"`, details("", "must have exactly one of the allowed forms")},
		{`{"oneOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`, details("", "must have exactly one of the allowed forms")},
		{`{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}`, `{"a":1}`, details("/b", "is required")},
		{`{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}`, `{}`, details("/c", "is required")},
		{`{"properties":{"child":{"$ref":"#"},"v":{"type":"integer"}}}`, `{"child":{"child":{"v":"x"}}}`, details("/child/child/v", "must be an integer")},
		{`{"properties":{"required":{"minLength":2}}}`, `{"required":"x"}`, details("/required", "must have at least 2 characters")},
	} {
		t.Run(tt.schema, func(t *testing.T) {
			_, err := bodyOf[any](t, tt.schema, jsonbody.Options{}).Parse([]byte(tt.text))
			if tt.want == nil {
				if err != nil {
					t.Errorf("Parse refused %s: %v", tt.text, err)
				}
				return
			}
			got := refusal(t, err).Details
			if diff := cmp.Diff(tt.want, got, anyRule); diff != "" {
				t.Errorf("%s: details (-want +got):\n%s", tt.text, diff)
			}
			for _, d := range got {
				if inSchema := strings.Contains(tt.schema, `"`+d.Rule+`"`); !inSchema && d.Rule != "required" && d.Rule != "minContains" && d.Detail != "is not allowed" {
					t.Errorf("%s: the rule of %+v is no keyword of the schema", tt.text, d)
				}
			}
		})
	}
}

// Formats are annotations, whether or not the document names its draft (JSON Schema
// 2020-12 validation section 7.2.1).
func TestFormatsAreAnnotations(t *testing.T) {
	for _, schema := range []string{
		`{"format":"email"}`,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","format":"email"}`,
		`{"format":"int64"}`,
	} {
		if _, err := bodyOf[any](t, schema, jsonbody.Options{}).Parse([]byte(`"no address"`)); err != nil {
			t.Errorf("schema %s: Parse: %v", schema, err)
		}
	}
}

func TestRefusalsAreShort(t *testing.T) {
	body := bodyOf[any](t, `{"items":{"type":"string"}}`, jsonbody.Options{})
	_, err := body.Parse([]byte("[" + strings.Repeat("0,", 2000) + "0]"))
	if n := len(refusal(t, err).Details); n != 20 {
		t.Errorf("got %d details, want the first 20", n)
	}
}

// Texts contain no value that a client sent, no Go type and no URL of the schema.
func TestRefusalsTellNoSecrets(t *testing.T) {
	const secret = "hunter2"
	for _, tt := range []struct{ schema, text string }{
		{`{"maxLength":1,"pattern":"^x","const":"a","enum":["b"],"minLength":99}`, `"hunter2"`},
		{`{"items":{"type":"integer"}}`, `["hunter2"]`},
		{`{"$ref":"#/$defs/x","$defs":{"x":{"not":{"type":"string"}}}}`, `"hunter2"`},
		{`{"maximum":1,"multipleOf":10}`, `1234567`},
		{`{}`, `{"hunter2" 1}`},
		{`{}`, `"hunter2\ud800"`},
	} {
		_, err := bodyOf[any](t, tt.schema, jsonbody.Options{}).Parse([]byte(tt.text))
		text := fmt.Sprintf("%v %v", err, refusal(t, err).Details)
		for _, s := range []string{secret, "1234567", "document:", "file:", "jsonschema", "map[", "string)", "json.Number", "$defs"} {
			if strings.Contains(text, s) {
				t.Errorf("schema %s: the refusal has %q in it: %s", tt.schema, s, text)
			}
		}
	}
}

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

func TestNewRefusesSchemas(t *testing.T) {
	for _, tt := range []struct{ name, document, reference, want string }{
		{"no JSON", "openapi: 3.1.1", "#", "invalid json"},
		{"no schema", `[]`, "#", "object or boolean"},
		{"wrong keyword", `{"minLength":"1"}`, "#", "minLength"},
		{"OpenAPI 3.0", `{"minimum":1,"exclusiveMinimum":true}`, "#", "exclusiveMinimum"},
		{"reference to nothing", openAPI, "#/components/schemas/Newpet", "Newpet not found"},
		{"reference without #", openAPI, "components/schemas/NewPet", `the reference must begin with "#", got "components/schemas/NewPet"`},
		{"file", `{"$ref":"other.json#/a"}`, "#", `"other.json" is outside of the document`},
		{"file by URL", `{"$ref":"file:///etc/passwd"}`, "#", `"file:///etc/passwd" is outside of the document`},
		{"network", `{"properties":{"a":{"$ref":"https://example.com/s.json"}}}`, "#", `"https://example.com/s.json" is outside of the document`},
		{"metaschema", `{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, "#", "is outside of the document"},
		{"other draft", `{"$schema":"http://json-schema.org/draft-07/schema#"}`, "#", "another draft than 2020-12"},
		{"unknown draft", `{"$schema":"https://example.com/draft"}`, "#", "is outside of the document"},
		{"loop", `{"$ref":"#"}`, "#", "infinite loop"},
		{"dynamic reference", `{"$dynamicAnchor":"x","properties":{"a":{"$dynamicRef":"#x"}}}`, "#", "$dynamicRef is not supported"},
		{"pattern of ECMAScript only", `{"pattern":"^[\\u0000]$"}`, "#", "pattern"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := jsonbody.New[any]([]byte(tt.document), tt.reference, jsonbody.Options{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("New: got error %v, want one about %q", err, tt.want)
			}
		})
	}
}

func TestNewRefusesOptions(t *testing.T) {
	for _, tt := range []struct {
		options jsonbody.Options
		want    string
	}{
		{jsonbody.Options{MaxBytes: -1}, "jsonbody: Options.MaxBytes must be from 1 to 1073741824, or 0 for 65536, got -1"},
		{jsonbody.Options{MaxBytes: math.MaxInt64}, "jsonbody: Options.MaxBytes must be from 1 to 1073741824, or 0 for 65536, got 9223372036854775807"},
		{jsonbody.Options{MaxDepth: -1}, "jsonbody: Options.MaxDepth must be from 1 to 1000, or 0 for 16, got -1"},
		{jsonbody.Options{MaxDepth: 1001}, "jsonbody: Options.MaxDepth must be from 1 to 1000, or 0 for 16, got 1001"},
		{jsonbody.Options{MaxValues: -1}, "jsonbody: Options.MaxValues must be 1 or more, or 0 for 2500, got -1"},
		{jsonbody.Options{MediaTypes: []string{"application/json", "json"}}, `jsonbody: Options.MediaTypes[1] must be a media type without parameters, such as application/json, got "json"`},
		{jsonbody.Options{MediaTypes: []string{"application/json; charset=utf-8"}}, `jsonbody: Options.MediaTypes[0] must be a media type without parameters, such as application/json, got "application/json; charset=utf-8"`},
	} {
		_, err := jsonbody.New[any]([]byte(`{}`), "#", tt.options)
		if err == nil || err.Error() != tt.want {
			t.Errorf("New(%+v): got error %v, want %q", tt.options, err, tt.want)
		}
	}
}

// References with escapes lead to their schema, as $ref has it.
func TestReferences(t *testing.T) {
	const document = `{
		"a b": {"c/d": {"$id": "https://example.com/inner", "properties": {"x": {"$ref": "#/$defs/y"}}, "$defs": {"y": {"maxLength": 1}}}},
		"$defs": {"z": {"$anchor": "here", "maxLength": 2}}
	}`
	for _, tt := range []struct{ reference, text, want string }{
		{"#/a%20b/c~1d", `{"x":"ab"}`, "/x must have at most 1 character"},
		{"#/$defs/z", `"abc"`, "must have at most 2 characters"},
		{"#here", `"abc"`, "must have at most 2 characters"},
	} {
		body, err := jsonbody.New[any]([]byte(document), tt.reference, jsonbody.Options{})
		if err != nil {
			t.Errorf("New with reference %s: %v", tt.reference, err)
			continue
		}
		_, err = body.Parse([]byte(tt.text))
		if e := refusal(t, err); !strings.HasSuffix(e.Message, tt.want+".") {
			t.Errorf("reference %s: message %q, want %q", tt.reference, e.Message, tt.want)
		}
	}
}
