package jsonbody

import (
	"reflect"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// misfit returns the types of JSON that the first of schemas demands, if no value
// that any of schemas allows fits into t; nil if some may, or if there is no schema.
func misfit(t reflect.Type, schemas []*jsonschema.Schema) (types []string) {
	for _, js := range schemas {
		demanded := foreign(t, js, make(map[*jsonschema.Schema]bool))
		if demanded == nil {
			return nil
		}
		if types == nil {
			types = demanded
		}
	}
	return types
}

// foreign returns the types that js demands if t can hold none of them. It looks
// only where a demand holds for every value: in js, $ref and allOf.
func foreign(t reflect.Type, js *jsonschema.Schema, seen map[*jsonschema.Schema]bool) []string {
	if js == nil || seen[js] {
		return nil
	}
	seen[js] = true
	if len(js.Types) > 0 && !slices.ContainsFunc(js.Types, func(name string) bool { return holds(t, name) }) {
		return js.Types
	}
	for _, sub := range append([]*jsonschema.Schema{js.Ref}, js.AllOf...) {
		if types := foreign(t, sub, seen); types != nil {
			return types
		}
	}
	return nil
}

// holds reports whether some value of a type of JSON may fit into t. What becomes
// of null, and of types that are not supported, is decided elsewhere.
func holds(t reflect.Type, name string) bool {
	switch {
	case name == "null":
		return true
	case t == numberType:
		return name == "number" || name == "integer"
	case reflect.PointerTo(t).Implements(textType):
		return name == "string"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return holds(t.Elem(), name)
	case reflect.Bool:
		return name == "boolean"
	case reflect.String:
		return name == "string"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float64:
		return name == "number" || name == "integer"
	case reflect.Slice:
		return name == "array"
	case reflect.Map, reflect.Struct:
		return name == "object"
	}
	return true
}
