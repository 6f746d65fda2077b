package jsonbody_test

import (
	"math"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/middleware/jsonbody"
)

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
