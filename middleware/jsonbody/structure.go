package jsonbody

import (
	"fmt"
	"reflect"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

func (m setters) structure(t reflect.Type, schemas []*jsonschema.Schema) (setter, error) {
	fields, err := fieldsOf(t)
	if err != nil {
		return nil, err
	}
	sets := make([]setter, len(fields))
	for i, f := range fields {
		var subs []*jsonschema.Schema
		for _, js := range schemas {
			subs = append(subs, memberSchemas(js, f.name)...)
		}
		switch {
		case len(subs) == 0:
			err = fmt.Errorf("the schema does not describe a member %q", f.name)
		case f.quoted:
			sets[i], err = m.quoted(f.t, subs)
		default:
			sets[i], err = m.of(f.t, subs)
		}
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.path, err)
		}
	}
	return func(dst reflect.Value, v any) *problem {
		members, ok := v.(map[string]any)
		if !ok {
			return &problem{detail: "must be an object"}
		}
		for i := range fields {
			f := &fields[i]
			value, ok := members[f.name]
			if !ok {
				continue
			}
			if p := sets[i](f.of(dst), value); p != nil {
				return p.within(f.name)
			}
		}
		return nil
	}, nil
}

// quoted returns the setter of a field with the tag option string: its value is the
// content of a string. The schema describes the string.
func (m setters) quoted(t reflect.Type, schemas []*jsonschema.Schema) (setter, error) {
	if _, err := m.of(reflect.TypeFor[string](), schemas); err != nil {
		return nil, err
	}
	set, err := m.of(t, nil)
	if err != nil {
		return nil, err
	}
	return func(dst reflect.Value, v any) *problem {
		if v == nil && t.Kind() == reflect.Pointer {
			dst.SetZero()
			return nil
		}
		s, ok := v.(string)
		if !ok {
			return &problem{detail: "must be a string"}
		}
		content, p := parse([]byte(s), newLimits(Options{}))
		if p == nil {
			p = set(dst, content)
		}
		if p != nil {
			return &problem{detail: "contains text that " + p.detail}
		}
		return nil
	}, nil
}

// withInPlace adds to schemas all schemas that they apply to the same value.
func withInPlace(schemas []*jsonschema.Schema) []*jsonschema.Schema {
	var all []*jsonschema.Schema
	seen := make(map[*jsonschema.Schema]bool)
	var add func(js *jsonschema.Schema)
	add = func(js *jsonschema.Schema) {
		if seen[js] {
			return
		}
		seen[js] = true
		all = append(all, js)
		for _, sub := range inPlaceSchemas(js) {
			if sub != js.Not { // says what the value is not
				add(sub)
			}
		}
	}
	for _, js := range schemas {
		add(js)
	}
	return all
}

// memberSchemas returns the schemas of js for the member of this name; none if js does
// not describe or forbids it.
func memberSchemas(js *jsonschema.Schema, name string) []*jsonschema.Schema {
	var subs []*jsonschema.Schema
	if sub := js.Properties[name]; sub != nil {
		subs = append(subs, sub)
	}
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
	var subs []*jsonschema.Schema
	if sub, ok := js.AdditionalProperties.(*jsonschema.Schema); ok {
		subs = append(subs, sub)
	}
	if sub := js.UnevaluatedProperties; sub != nil && (sub.Always == nil || *sub.Always) {
		subs = append(subs, sub)
	}
	return subs
}

// anyMemberSchemas returns the schemas of js for members of any name.
func anyMemberSchemas(js *jsonschema.Schema) []*jsonschema.Schema {
	subs := unnamedMemberSchemas(js)
	for _, sub := range js.Properties {
		subs = append(subs, sub)
	}
	for _, sub := range js.PatternProperties {
		subs = append(subs, sub)
	}
	return subs
}

// itemSchemas returns the schemas for the items of an array.
func itemSchemas(schemas []*jsonschema.Schema) []*jsonschema.Schema {
	var subs []*jsonschema.Schema
	for _, js := range schemas {
		subs = append(subs, js.PrefixItems...)
		if js.Items2020 != nil {
			subs = append(subs, js.Items2020)
		}
		if js.UnevaluatedItems != nil {
			subs = append(subs, js.UnevaluatedItems)
		}
	}
	return subs
}
