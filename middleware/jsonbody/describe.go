package jsonbody

import "github.com/santhosh-tekuri/jsonschema/v5"

// alongside adds to schemas all those that they apply to the same value.
func alongside(schemas []*jsonschema.Schema) []*jsonschema.Schema {
	var all []*jsonschema.Schema
	seen := make(map[*jsonschema.Schema]bool)
	var add func(js *jsonschema.Schema)
	add = func(js *jsonschema.Schema) {
		if seen[js] {
			return
		}
		seen[js] = true
		all = append(all, js)
		for _, sub := range inPlace(js) {
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

// described returns the schemas of js for the member of this name; none if the
// schema leaves it open or forbids it.
func described(js *jsonschema.Schema, name string) []*jsonschema.Schema {
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
	return otherSchemas(js)
}

// otherSchemas returns the schemas of js for members that it does not name.
func otherSchemas(js *jsonschema.Schema) []*jsonschema.Schema {
	var subs []*jsonschema.Schema
	if sub, ok := js.AdditionalProperties.(*jsonschema.Schema); ok {
		subs = append(subs, sub)
	}
	if sub := js.UnevaluatedProperties; sub != nil && (sub.Always == nil || *sub.Always) {
		subs = append(subs, sub)
	}
	return subs
}

// valueSchemas returns the schemas of js for members of any name.
func valueSchemas(js *jsonschema.Schema) []*jsonschema.Schema {
	subs := otherSchemas(js)
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
