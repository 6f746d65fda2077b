package jsonbody

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// setter sets dst, of the type that it was made for, to a value of parse. It refuses
// values that the type cannot hold without loss.
type setter func(dst reflect.Value, v any) *problem

var (
	numberType = reflect.TypeFor[json.Number]()
	bigIntType = reflect.TypeFor[big.Int]()
	textType   = reflect.TypeFor[encoding.TextUnmarshaler]()
	jsonType   = reflect.TypeFor[json.Unmarshaler]()
)

// newSetter returns the setter of a type. The schemas describe its values, and enclosing
// are the struct types around it.
func newSetter(t reflect.Type, schemas []*jsonschema.Schema, enclosing []reflect.Type) (setter, error) {
	if types := incompatible(t, schemas); types != nil {
		return nil, fmt.Errorf("type %v cannot hold the values of the schema, which must be %s", t, typeNames(types))
	}
	schemas = withInPlace(schemas)
	switch {
	case t == numberType:
		return setNumber, nil
	case t == bigIntType:
		return setBigInt, nil
	case reflect.PointerTo(t).Implements(textType):
		return setText, nil
	case reflect.PointerTo(t).Implements(jsonType):
		return nil, fmt.Errorf("type %v implements json.Unmarshaler, which would bypass the checks", t)
	}
	switch t.Kind() {
	case reflect.Bool:
		return setBool, nil
	case reflect.String:
		return setString, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return setInt, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return setUint, nil
	case reflect.Float32, reflect.Float64:
		return setFloat, nil
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return setAny, nil
		}
	case reflect.Pointer:
		return newPointerSetter(t, schemas, enclosing)
	case reflect.Slice:
		return newSliceSetter(t, schemas, enclosing)
	case reflect.Array:
		return newArraySetter(t, schemas, enclosing)
	case reflect.Map:
		if t.Key().Kind() == reflect.String && !reflect.PointerTo(t.Key()).Implements(textType) {
			return newMapSetter(t, schemas, enclosing)
		}
	case reflect.Struct:
		if slices.Contains(enclosing, t) {
			return nil, fmt.Errorf("type %v contains itself", t)
		}
		return newStructSetter(t, schemas, append(slices.Clip(enclosing), t))
	}
	return nil, fmt.Errorf("type %v is not supported", t)
}

func newPointerSetter(t reflect.Type, schemas []*jsonschema.Schema, enclosing []reflect.Type) (setter, error) {
	elem, err := newSetter(t.Elem(), schemas, enclosing)
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

func newSliceSetter(t reflect.Type, schemas []*jsonschema.Schema, enclosing []reflect.Type) (setter, error) {
	elem, err := newSetter(t.Elem(), itemSchemas(schemas), enclosing)
	if err != nil {
		return nil, err
	}
	bytes := t.Elem().Kind() == reflect.Uint8
	return func(dst reflect.Value, v any) *problem {
		items, ok := v.([]any)
		if !ok && v != nil {
			if bytes {
				return setBytes(dst, v)
			}
			return &problem{detail: "must be an array"}
		}
		if v == nil {
			dst.SetZero()
			return nil
		}
		dst.Set(reflect.MakeSlice(t, len(items), len(items)))
		for i, item := range items {
			if p := elem(dst.Index(i), item); p != nil {
				return p.within(strconv.Itoa(i))
			}
		}
		return nil
	}, nil
}

func newArraySetter(t reflect.Type, schemas []*jsonschema.Schema, enclosing []reflect.Type) (setter, error) {
	elem, err := newSetter(t.Elem(), itemSchemas(schemas), enclosing)
	if err != nil {
		return nil, err
	}
	return func(dst reflect.Value, v any) *problem {
		items, ok := v.([]any)
		if !ok {
			return &problem{detail: "must be an array"}
		}
		if len(items) > t.Len() {
			return &problem{detail: "must have at most " + count(t.Len(), "item")}
		}
		for i, item := range items {
			if p := elem(dst.Index(i), item); p != nil {
				return p.within(strconv.Itoa(i))
			}
		}
		return nil
	}, nil
}

func newMapSetter(t reflect.Type, schemas []*jsonschema.Schema, enclosing []reflect.Type) (setter, error) {
	var values []*jsonschema.Schema
	for _, js := range schemas {
		values = append(values, anyMemberSchemas(js)...)
	}
	elem, err := newSetter(t.Elem(), values, enclosing)
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
				return p.within(name)
			}
			dst.SetMapIndex(reflect.ValueOf(name).Convert(t.Key()), value)
		}
		return nil
	}, nil
}

func newStructSetter(t reflect.Type, schemas []*jsonschema.Schema, enclosing []reflect.Type) (setter, error) {
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
			set, err = newSetter(f.Type, subs, enclosing)
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
