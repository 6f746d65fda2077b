package jsonbody

import "github.com/santhosh-tekuri/jsonschema/v5"

// enumeration replaces the validator's own check of enum, which makes two big fractions
// for each number and each value that it is compared with. This one looks the value up.
type enumeration struct {
	values []any
	keys   map[string]struct{}
}

func newEnumeration(values []any) enumeration {
	e := enumeration{values, make(map[string]struct{}, len(values))}
	for _, v := range values {
		e.keys[string(appendKey(nil, v))] = struct{}{}
	}
	return e
}

// Validate implements jsonschema.ExtSchema.
func (e enumeration) Validate(ctx jsonschema.ValidationContext, v any) error {
	if _, ok := e.keys[string(appendKey(nil, v))]; !ok {
		return ctx.Error("enum", "not one of the values")
	}
	return nil
}

// enumOf returns the values of enum, also after collect has put an enumeration there.
func enumOf(js *jsonschema.Schema) []any {
	if e, ok := js.Extensions["enum"].(enumeration); ok {
		return e.values
	}
	return js.Enum
}

// extend adds a check to a schema.
func extend(js *jsonschema.Schema, keyword string, check jsonschema.ExtSchema) {
	if js.Extensions == nil {
		js.Extensions = make(map[string]jsonschema.ExtSchema)
	}
	js.Extensions[keyword] = check
}
