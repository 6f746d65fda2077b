package jsonbody

import (
	"reflect"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// incompatible returns the JSON types that the first of schemas requires if t can hold no
// value that any of schemas allows. It returns nil if t may hold one, and without
// schemas.
func incompatible(t reflect.Type, schemas []*jsonschema.Schema) (types []string) {
	for _, js := range schemas {
		required := requiredTypes(t, js, make(map[*jsonschema.Schema]bool))
		if required == nil {
			return nil
		}
		if types == nil {
			types = required
		}
	}
	return types
}

// requiredTypes returns the JSON types that js requires if t can hold none of them. It
// looks only where the type is required of every value: in js, $ref and allOf.
func requiredTypes(t reflect.Type, js *jsonschema.Schema, seen map[*jsonschema.Schema]bool) []string {
	if js == nil || seen[js] {
		return nil
	}
	seen[js] = true
	if len(js.Types) > 0 && !slices.ContainsFunc(js.Types, func(name string) bool { return canHold(t, name) }) {
		return js.Types
	}
	for _, sub := range append([]*jsonschema.Schema{js.Ref}, js.AllOf...) {
		if types := requiredTypes(t, sub, seen); types != nil {
			return types
		}
	}
	return nil
}

// canHold reports whether t can hold a value of a JSON type. Null and unsupported Go
// types are checked elsewhere.
func canHold(t reflect.Type, name string) bool {
	switch {
	case name == "null":
		return true
	case t == numberType || t == bigIntType:
		return name == "number" || name == "integer"
	case t == timeType:
		return name == "string"
	case reflect.PointerTo(t).Implements(jsonType):
		return name != "object" && name != "array"
	case reflect.PointerTo(t).Implements(textType):
		return name == "string"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return canHold(t.Elem(), name)
	case reflect.Bool:
		return name == "boolean"
	case reflect.String:
		return name == "string"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64:
		return name == "number" || name == "integer"
	case reflect.Slice:
		return name == "array" || name == "string" && t.Elem().Kind() == reflect.Uint8
	case reflect.Array:
		return name == "array"
	case reflect.Map, reflect.Struct:
		return name == "object"
	}
	return true
}
