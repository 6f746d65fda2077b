package jsonbody

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// uniqueItems replaces the validator's own check, which compares short arrays pair by
// pair, and long ones by a hash in which a client can cause collisions with nested empty
// arrays. This one is linear.
type uniqueItems struct{}

// Validate implements jsonschema.ExtSchema.
func (uniqueItems) Validate(ctx jsonschema.ValidationContext, v any) error {
	items, ok := v.([]any)
	if !ok {
		return nil
	}
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
		d := newDecimal(v.String())
		if d.negative {
			b = append(b, '-')
		}
		b = append(append(b, '#'), d.digits...)
		return strconv.AppendInt(append(b, 'e'), int64(d.exponent), 10)
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
