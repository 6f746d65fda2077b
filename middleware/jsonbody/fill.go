package jsonbody

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// filler sets dst, of the type that it was made for, to a value of parse. It takes
// what the type can hold without loss, and nothing else.
type filler func(dst reflect.Value, v any) *problem

var (
	numberType = reflect.TypeFor[json.Number]()
	textType   = reflect.TypeFor[encoding.TextUnmarshaler]()
	jsonType   = reflect.TypeFor[json.Unmarshaler]()
)

// newFiller prepares a type. The schemas are those that describe its values, and
// outer are the struct types around it.
func newFiller(t reflect.Type, schemas []*jsonschema.Schema, outer []reflect.Type) (filler, error) {
	if types := misfit(t, schemas); types != nil {
		return nil, fmt.Errorf("type %v cannot hold what the schema describes: it must be %s", t, typeNames(types))
	}
	schemas = alongside(schemas)
	switch {
	case t == numberType:
		return fillNumber, nil
	case reflect.PointerTo(t).Implements(textType):
		return fillText, nil
	case reflect.PointerTo(t).Implements(jsonType):
		return nil, fmt.Errorf("type %v reads JSON by itself, past the checks", t)
	}
	switch t.Kind() {
	case reflect.Bool:
		return fillBool, nil
	case reflect.String:
		return fillString, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fillInt, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fillUint, nil
	case reflect.Float64:
		return fillFloat, nil
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return fillAny, nil
		}
	case reflect.Pointer:
		return newPointerFiller(t, schemas, outer)
	case reflect.Slice:
		// encoding/json has base64 in a []byte, and an array in any other slice.
		if t.Elem().Kind() != reflect.Uint8 {
			return newSliceFiller(t, schemas, outer)
		}
	case reflect.Map:
		if t.Key().Kind() == reflect.String && !reflect.PointerTo(t.Key()).Implements(textType) {
			return newMapFiller(t, schemas, outer)
		}
	case reflect.Struct:
		if slices.Contains(outer, t) {
			return nil, fmt.Errorf("type %v contains itself", t)
		}
		return newStructFiller(t, schemas, append(slices.Clip(outer), t))
	}
	return nil, fmt.Errorf("type %v is not supported", t)
}

func newPointerFiller(t reflect.Type, schemas []*jsonschema.Schema, outer []reflect.Type) (filler, error) {
	elem, err := newFiller(t.Elem(), schemas, outer)
	if err != nil {
		return nil, err
	}
	return func(dst reflect.Value, v any) *problem {
		if v == nil {
			dst.SetZero()
			return nil
		}
		dst.Set(reflect.New(t.Elem()))
		return elem(dst.Elem(), v)
	}, nil
}

func newSliceFiller(t reflect.Type, schemas []*jsonschema.Schema, outer []reflect.Type) (filler, error) {
	elem, err := newFiller(t.Elem(), itemSchemas(schemas), outer)
	if err != nil {
		return nil, err
	}
	return func(dst reflect.Value, v any) *problem {
		items, ok := v.([]any)
		if !ok && v != nil {
			return &problem{detail: "must be an array"}
		}
		if v == nil {
			dst.SetZero()
			return nil
		}
		dst.Set(reflect.MakeSlice(t, len(items), len(items)))
		for i, item := range items {
			if p := elem(dst.Index(i), item); p != nil {
				return p.under(strconv.Itoa(i))
			}
		}
		return nil
	}, nil
}

func newMapFiller(t reflect.Type, schemas []*jsonschema.Schema, outer []reflect.Type) (filler, error) {
	var values []*jsonschema.Schema
	for _, js := range schemas {
		values = append(values, valueSchemas(js)...)
	}
	elem, err := newFiller(t.Elem(), values, outer)
	if err != nil {
		return nil, err
	}
	return func(dst reflect.Value, v any) *problem {
		members, ok := v.(map[string]any)
		if !ok && v != nil {
			return &problem{detail: "must be an object"}
		}
		if v == nil {
			dst.SetZero()
			return nil
		}
		dst.Set(reflect.MakeMapWithSize(t, len(members)))
		for _, name := range slices.Sorted(maps.Keys(members)) {
			value := reflect.New(t.Elem()).Elem()
			if p := elem(value, members[name]); p != nil {
				return p.under(name)
			}
			dst.SetMapIndex(reflect.ValueOf(name).Convert(t.Key()), value)
		}
		return nil
	}, nil
}

func newStructFiller(t reflect.Type, schemas []*jsonschema.Schema, outer []reflect.Type) (filler, error) {
	type field struct {
		index int
		name  string
		fill  filler
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
			subs = append(subs, described(js, name)...)
		}
		var fill filler
		switch {
		case err != nil:
		case taken[name]:
			err = fmt.Errorf("is the second field for the member %q", name)
		case len(subs) == 0:
			err = fmt.Errorf("the schema does not describe a member %q", name)
		default:
			fill, err = newFiller(f.Type, subs, outer)
		}
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.Name, err)
		}
		taken[name] = true
		fields = append(fields, field{i, name, fill})
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
			if p := f.fill(dst.Field(f.index), value); p != nil {
				return p.under(f.name)
			}
		}
		return nil
	}, nil
}

// memberName returns which member a field holds. Options of the tag that change how
// a value is written are none for reading, except for string.
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
