package jsonbody

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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
	if js.UniqueItems {
		js.UniqueItems = false
		extend(js, "uniqueItems", uniqueItems{})
	}
	if len(js.Enum) > 0 {
		extend(js, "enum", newEnumeration(js.Enum))
		js.Enum = nil
	}
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

// subschemas returns the schemas that js applies to a value or to parts of it.
func subschemas(js *jsonschema.Schema) []*jsonschema.Schema {
	subs := inPlaceSchemas(js)
	one := func(sub any) {
		if sub, ok := sub.(*jsonschema.Schema); ok && sub != nil {
			subs = append(subs, sub)
		}
	}
	one(js.PropertyNames)
	for _, sub := range js.Properties {
		one(sub)
	}
	for _, sub := range js.PatternProperties {
		one(sub)
	}
	one(js.AdditionalProperties)
	one(js.UnevaluatedProperties)
	for _, sub := range js.PrefixItems {
		one(sub)
	}
	one(js.Items2020)
	one(js.Contains)
	one(js.UnevaluatedItems)
	return subs
}

// inPlaceSchemas returns the schemas that js applies to the same value as itself.
func inPlaceSchemas(js *jsonschema.Schema) []*jsonschema.Schema {
	var subs []*jsonschema.Schema
	for _, sub := range []*jsonschema.Schema{js.Ref, js.Not, js.If, js.Then, js.Else} {
		if sub != nil {
			subs = append(subs, sub)
		}
	}
	subs = append(subs, js.AllOf...)
	subs = append(subs, js.AnyOf...)
	subs = append(subs, js.OneOf...)
	for _, sub := range js.DependentSchemas {
		subs = append(subs, sub)
	}
	for _, sub := range js.Dependencies {
		if sub, ok := sub.(*jsonschema.Schema); ok {
			subs = append(subs, sub)
		}
	}
	return subs
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
