package jsonbody

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// setter sets dst, of the type that it was made for, to a value of parse. It refuses
// values that the type cannot hold without loss.
type setter func(dst reflect.Value, v any) *problem

// setters are those that New has made, or is making, of a type and of the schemas that
// describe its values. A type that contains itself meets its own setter there.
type setters map[setterKey]*setter

type setterKey struct {
	t       reflect.Type
	schemas string // their locations
}

var (
	numberType = reflect.TypeFor[json.Number]()
	bigIntType = reflect.TypeFor[big.Int]()
	ratType    = reflect.TypeFor[big.Rat]()
	timeType   = reflect.TypeFor[time.Time]()
	rawType    = reflect.TypeFor[json.RawMessage]()
	textType   = reflect.TypeFor[encoding.TextUnmarshaler]()
	jsonType   = reflect.TypeFor[json.Unmarshaler]()
)

// of returns the setter of a type. The schemas describe its values.
func (m setters) of(t reflect.Type, schemas []*jsonschema.Schema) (setter, error) {
	if pointsToItself(t) {
		return nil, fmt.Errorf("type %v points only to itself", t)
	}
	if err := checkKinds(t, schemas); err != nil {
		return nil, err
	}
	inPlace := withInPlace(schemas)
	key := setterKey{t, locations(inPlace)}
	if set, ok := m[key]; ok {
		return func(dst reflect.Value, v any) *problem { return (*set)(dst, v) }, nil
	}
	set := new(setter)
	m[key] = set
	var err error
	if *set, err = m.make(t, inPlace); err != nil {
		return nil, err
	}
	return *set, checkValues(t, schemas, *set)
}

// locations returns a text that two lists of schemas share if and only if they have the
// same schemas.
func locations(schemas []*jsonschema.Schema) string {
	all := make([]string, len(schemas))
	for i, js := range schemas {
		all[i] = js.Location
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), "\n")
}

func (m setters) make(t reflect.Type, schemas []*jsonschema.Schema) (setter, error) {
	switch {
	case t == numberType:
		return setNumber, nil
	case t == bigIntType:
		return setBigInt, nil
	case t == ratType:
		return setRat, nil
	case t == timeType:
		return setText, nil
	case t == rawType:
		return nil, fmt.Errorf("type %v is not supported; use any", t)
	case reflect.PointerTo(t).Implements(jsonType):
		return setJSON, nil
	case reflect.PointerTo(t).Implements(textType):
		return setText, nil
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
		return m.pointer(t, schemas)
	case reflect.Slice:
		return m.slice(t, schemas)
	case reflect.Array:
		return m.array(t, schemas)
	case reflect.Map:
		if t.Key().Kind() == reflect.String && !reflect.PointerTo(t.Key()).Implements(textType) {
			return m.mapping(t, schemas)
		}
	case reflect.Struct:
		return m.structure(t, schemas)
	}
	return nil, fmt.Errorf("type %v is not supported", t)
}

func pointsToItself(t reflect.Type) bool {
	seen := make(map[reflect.Type]bool)
	for ; t.Kind() == reflect.Pointer; t = t.Elem() {
		if seen[t] {
			return true
		}
		seen[t] = true
	}
	return false
}

func (m setters) pointer(t reflect.Type, schemas []*jsonschema.Schema) (setter, error) {
	elem, err := m.of(t.Elem(), schemas)
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

func (m setters) slice(t reflect.Type, schemas []*jsonschema.Schema) (setter, error) {
	elem, err := m.of(t.Elem(), itemSchemas(schemas))
	if err != nil {
		return nil, err
	}
	bytes := t.Elem().Kind() == reflect.Uint8
	return func(dst reflect.Value, v any) *problem {
		if v == nil {
			dst.SetZero()
			return nil
		}
		items, ok := v.([]any)
		switch {
		case !ok && bytes:
			return setBytes(dst, v)
		case !ok:
			return &problem{detail: "must be an array"}
		}
		dst.Set(reflect.MakeSlice(t, len(items), len(items)))
		return setItems(dst, items, elem)
	}, nil
}

func (m setters) array(t reflect.Type, schemas []*jsonschema.Schema) (setter, error) {
	elem, err := m.of(t.Elem(), itemSchemas(schemas))
	if err != nil {
		return nil, err
	}
	return func(dst reflect.Value, v any) *problem {
		items, ok := v.([]any)
		switch {
		case !ok:
			return &problem{detail: "must be an array"}
		case len(items) > t.Len():
			return &problem{detail: "must have at most " + count(t.Len(), "item")}
		}
		return setItems(dst, items, elem)
	}, nil
}

// setItems sets the first elements of a slice or an array.
func setItems(dst reflect.Value, items []any, elem setter) *problem {
	for i, item := range items {
		if p := elem(dst.Index(i), item); p != nil {
			return p.within(strconv.Itoa(i))
		}
	}
	return nil
}

func (m setters) mapping(t reflect.Type, schemas []*jsonschema.Schema) (setter, error) {
	var values []*jsonschema.Schema
	for _, js := range schemas {
		values = append(values, anyMemberSchemas(js)...)
	}
	elem, err := m.of(t.Elem(), values)
	if err != nil {
		return nil, err
	}
	return func(dst reflect.Value, v any) *problem {
		if v == nil {
			dst.SetZero()
			return nil
		}
		members, ok := v.(map[string]any)
		if !ok {
			return &problem{detail: "must be an object"}
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
