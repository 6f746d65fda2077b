package jsonbody

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// schema is a compiled schema with all schemas that it refers to.
type schema struct {
	root *jsonschema.Schema

	// byLocation finds the schema of a violation, to describe its requirement
	// without anything of the body.
	byLocation map[string]*jsonschema.Schema
	// nameSchemas are the values of propertyNames: they apply to names of members.
	nameSchemas map[*jsonschema.Schema]bool
}

// documentURL is the URL of the document for the compiler. It resolves relative
// references and is never read.
const documentURL = "document:///"

func compile(document []byte, reference string) (s *schema, err error) {
	if !strings.HasPrefix(reference, "#") {
		return nil, fmt.Errorf(`the reference must begin with "#", got %q`, reference)
	}
	// The compiler panics on some schemas that its metaschema lets pass.
	defer func() {
		if r := recover(); r != nil {
			s, err = nil, fmt.Errorf("compiling: %v", r)
		}
	}()
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft2020
	c.ExtractAnnotations = true // for the titles of patterns
	c.LoadURL = func(url string) (io.ReadCloser, error) {
		return nil, fmt.Errorf("%q is outside of the document", strings.TrimPrefix(url, documentURL))
	}
	// Version 5.3.1 asserts formats in a document without $schema, such as every
	// OpenAPI document, and does not in one with it. They are annotations in both
	// (JSON Schema 2020-12 validation section 7.2.1).
	for name := range jsonschema.Formats {
		c.Formats[name] = func(any) bool { return true }
	}
	if err := c.AddResource(documentURL, bytes.NewReader(document)); err != nil {
		return nil, err
	}
	root, err := c.Compile(documentURL + reference)
	if err != nil {
		return nil, err
	}
	if root.Draft != jsonschema.Draft2020 {
		return nil, errors.New("$schema names another draft than 2020-12")
	}
	s = &schema{
		root:        root,
		byLocation:  make(map[string]*jsonschema.Schema),
		nameSchemas: make(map[*jsonschema.Schema]bool),
	}
	base, _, _ := strings.Cut(root.Location, "#")
	if err := s.collect(root, base+"#"); err != nil {
		return nil, err
	}
	return s, nil
}

// collect adds a schema and all schemas that it refers to.
func (s *schema) collect(js *jsonschema.Schema, document string) error {
	if s.byLocation[js.Location] != nil {
		return nil
	}
	if !strings.HasPrefix(js.Location, document) {
		// The metaschemas, which the compiler has built in and shares.
		return fmt.Errorf("%q is outside of the document", js.Location)
	}
	if js.DynamicRef != nil || js.RecursiveRef != nil {
		return errors.New("$dynamicRef is not supported")
	}
	s.byLocation[js.Location] = js
	if js.Dependencies != nil {
		return errors.New("dependencies is not a keyword of 2020-12; write dependentRequired or dependentSchemas")
	}
	replaceSlowChecks(js)
	if js.PropertyNames != nil {
		s.nameSchemas[js.PropertyNames] = true
	}
	for _, sub := range subschemas(js) {
		if err := s.collect(sub, document); err != nil {
			return err
		}
	}
	return nil
}

// check applies the schema to a tree of parse, and returns the problems in the order of
// their pointers. An error means that the schema could not be applied.
func (s *schema) check(tree any) (problems []problem, err error) {
	// The limits on numbers prevent the known panics of the validator. An unknown one
	// must not end the connection or reveal anything to the client.
	defer func() {
		if r := recover(); r != nil {
			problems, err = nil, fmt.Errorf("jsonbody: applying the schema: %v", r)
		}
	}()
	err = s.root.Validate(tree)
	if err == nil {
		return nil, nil
	}
	violation, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return nil, fmt.Errorf("jsonbody: applying the schema: %w", err)
	}
	return s.problems(violation, tree), nil
}

// subschemas returns the schemas that js applies to a value or to parts of it.
func subschemas(js *jsonschema.Schema) []*jsonschema.Schema {
	return present(inPlaceSchemas(js), anyMemberSchemas(js), itemSchemas(js),
		[]*jsonschema.Schema{js.Not, js.PropertyNames, js.UnevaluatedProperties, js.Contains})
}

// inPlaceSchemas returns the schemas that say what the value is to which js is applied.
func inPlaceSchemas(js *jsonschema.Schema) []*jsonschema.Schema {
	return present([]*jsonschema.Schema{js.Ref, js.If, js.Then, js.Else}, js.AllOf, js.AnyOf, js.OneOf,
		slices.Collect(maps.Values(js.DependentSchemas)))
}

// withInPlace adds to schemas all schemas that they apply to the same value.
func withInPlace(schemas []*jsonschema.Schema) []*jsonschema.Schema {
	all := slices.Clone(schemas)
	for i := 0; i < len(all); i++ {
		for _, sub := range inPlaceSchemas(all[i]) {
			if !slices.Contains(all, sub) {
				all = append(all, sub)
			}
		}
	}
	return all
}

// memberSchemas returns the schemas of js for the member of this name; none if js does
// not describe or forbids it.
func memberSchemas(js *jsonschema.Schema, name string) []*jsonschema.Schema {
	subs := present([]*jsonschema.Schema{js.Properties[name]})
	for pattern, sub := range js.PatternProperties {
		if pattern.MatchString(name) {
			subs = append(subs, sub)
		}
	}
	if len(subs) > 0 {
		return subs
	}
	return unnamedMemberSchemas(js)
}

// unnamedMemberSchemas returns the schemas of js for members that it does not name.
func unnamedMemberSchemas(js *jsonschema.Schema) []*jsonschema.Schema {
	additional, _ := js.AdditionalProperties.(*jsonschema.Schema)
	unevaluated := js.UnevaluatedProperties
	if unevaluated != nil && unevaluated.Always != nil && !*unevaluated.Always {
		unevaluated = nil
	}
	return present([]*jsonschema.Schema{additional, unevaluated})
}

// anyMemberSchemas returns the schemas of js for members of any name.
func anyMemberSchemas(js *jsonschema.Schema) []*jsonschema.Schema {
	return present(unnamedMemberSchemas(js), slices.Collect(maps.Values(js.Properties)),
		slices.Collect(maps.Values(js.PatternProperties)))
}

// itemSchemas returns the schemas of js for the items of an array.
func itemSchemas(js *jsonschema.Schema) []*jsonschema.Schema {
	return present(js.PrefixItems, []*jsonschema.Schema{js.Items2020, js.UnevaluatedItems})
}

// present joins lists of schemas without those that are nil.
func present(lists ...[]*jsonschema.Schema) []*jsonschema.Schema {
	return slices.DeleteFunc(slices.Concat(lists...), func(js *jsonschema.Schema) bool { return js == nil })
}

// replaceSlowChecks replaces the validator's own checks of uniqueItems and enum. The
// first compares short arrays pair by pair, and long ones by a hash in which a client can
// cause collisions with nested empty arrays. The second makes two big fractions for each
// number and each value that it is compared with.
func replaceSlowChecks(js *jsonschema.Schema) {
	js.Extensions = make(map[string]jsonschema.ExtSchema)
	if js.UniqueItems {
		js.Extensions["uniqueItems"] = uniqueItems{}
		js.UniqueItems = false
	}
	if len(js.Enum) > 0 {
		keys := make(map[string]struct{}, len(js.Enum))
		for _, v := range js.Enum {
			keys[string(appendKey(nil, v))] = struct{}{}
		}
		js.Extensions["enum"] = enumeration{js.Enum, keys}
		js.Enum = nil
	}
}

type uniqueItems struct{}

// Validate implements jsonschema.ExtSchema.
func (uniqueItems) Validate(ctx jsonschema.ValidationContext, v any) error {
	items, _ := v.([]any)
	seen := make(map[string]struct{}, len(items))
	var key []byte
	for _, item := range items {
		key = appendKey(key[:0], item)
		if _, ok := seen[string(key)]; ok {
			return ctx.Error("uniqueItems", "repeated item")
		}
		seen[string(key)] = struct{}{}
	}
	return nil
}

type enumeration struct {
	values []any
	keys   map[string]struct{}
}

// Validate implements jsonschema.ExtSchema.
func (e enumeration) Validate(ctx jsonschema.ValidationContext, v any) error {
	if _, ok := e.keys[string(appendKey(nil, v))]; !ok {
		return ctx.Error("enum", "not one of the values")
	}
	return nil
}

// appendKey appends a text that two values share if and only if they are equal as
// JSON Schema defines it (2020-12 core section 4.2.2): numbers by value, objects
// without regard to order.
func appendKey(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, 'n')
	case bool:
		return strconv.AppendBool(b, v)
	case json.Number:
		return fmt.Append(b, newDecimal(v.String()))
	case string:
		b = append(strconv.AppendInt(b, int64(len(v)), 10), ':')
		return append(b, v...)
	case []any:
		b = append(b, '[')
		for _, item := range v {
			b = append(appendKey(b, item), ',')
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		for _, name := range slices.Sorted(maps.Keys(v)) {
			b = append(appendKey(appendKey(b, name), v[name]), ',')
		}
		return append(b, '}')
	}
	panic(fmt.Sprintf("not a JSON value: %T", v))
}
