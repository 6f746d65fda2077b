package jsonbody

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

func (m setters) structure(t reflect.Type, schemas []*jsonschema.Schema) (setter, error) {
	type field struct {
		index int
		name  string
		set   setter
	}
	var fields []field
	taken := make(map[string]bool)
	for i := range t.NumField() {
		f := t.Field(i)
		name, skip, err := memberName(f)
		if skip {
			continue
		}
		var subs []*jsonschema.Schema
		for _, js := range schemas {
			subs = append(subs, memberSchemas(js, name)...)
		}
		var set setter
		switch {
		case err != nil:
		case taken[name]:
			err = fmt.Errorf("is the second field for the member %q", name)
		case len(subs) == 0:
			err = fmt.Errorf("the schema does not describe a member %q", name)
		default:
			set, err = m.of(f.Type, subs)
		}
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.Name, err)
		}
		taken[name] = true
		fields = append(fields, field{i, name, set})
	}
	return func(dst reflect.Value, v any) *problem {
		members, ok := v.(map[string]any)
		if !ok {
			return &problem{detail: "must be an object"}
		}
		for _, f := range fields {
			value, ok := members[f.name]
			if !ok {
				continue
			}
			if p := f.set(dst.Field(f.index), value); p != nil {
				return p.within(f.name)
			}
		}
		return nil
	}, nil
}

// memberName returns the name of the member that a field is for. Options of the tag apply
// to encoding only, except for string.
func memberName(f reflect.StructField) (name string, skip bool, err error) {
	tag, tagged := f.Tag.Lookup("json")
	if tag == "-" || !f.IsExported() && !f.Anonymous {
		return "", true, nil
	}
	name, options, _ := strings.Cut(tag, ",")
	switch {
	case !f.IsExported():
		err = errors.New("is embedded and not exported")
	case f.Anonymous && (!tagged || name == ""):
		err = errors.New("is embedded without a name for its member")
	case slices.Contains(strings.Split(options, ","), "string"):
		err = errors.New("has the tag option string, which is not supported")
	}
	if name == "" {
		name = f.Name
	}
	return name, false, err
}
