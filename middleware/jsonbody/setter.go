package jsonbody

import (
	"cmp"
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

// of returns the setter of a type. The schemas describe its values.
func (m setters) of(t reflect.Type, schemas []*jsonschema.Schema) (setter, error) {
	inPlace := withInPlace(schemas)
	key := setterKey{t, locations(inPlace)}
	if set, ok := m[key]; ok {
		return func(dst reflect.Value, v any) *problem { return (*set)(dst, v) }, nil
	}
	if t == ratType || t == rawType {
		return nil, fmt.Errorf("type %v is not supported", t)
	}
	if err := checkType(t, schemas); err != nil {
		return nil, err
	}
	set := new(setter)
	m[key] = set
	var err error
	*set, err = m.make(t, inPlace)
	return *set, err
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
	if set, _ := scalar(t); set != nil {
		return set, nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return m.pointer(t, schemas)
	case reflect.Slice, reflect.Array:
		return m.list(t, schemas)
	case reflect.Map:
		if t.Key().Kind() == reflect.String && !reflect.PointerTo(t.Key()).Implements(textType) {
			return m.mapping(t, schemas)
		}
	case reflect.Struct:
		return m.structure(t, schemas)
	}
	return nil, fmt.Errorf("type %v is not supported", t)
}

var (
	numberType = reflect.TypeFor[json.Number]()
	intType    = reflect.TypeFor[big.Int]()
	ratType    = reflect.TypeFor[big.Rat]() // a short text with an exponent takes it long
	timeType   = reflect.TypeFor[time.Time]()
	rawType    = reflect.TypeFor[json.RawMessage]()
	textType   = reflect.TypeFor[encoding.TextUnmarshaler]()
	jsonType   = reflect.TypeFor[json.Unmarshaler]()
)

// scalar returns the setter of a type without parts, and the types of JSON values that
// it takes.
func scalar(t reflect.Type) (set setter, takes []string) {
	pointer := reflect.PointerTo(t)
	switch {
	case t == numberType:
		keep := func(dst reflect.Value, n json.Number) { dst.SetString(n.String()) } // the token as it was sent
		return setAs("a number", keep), []string{"number"}
	case t == intType:
		return setBigInt, []string{"number"}
	case t != timeType && pointer.Implements(jsonType):
		return setJSON, []string{"boolean", "number", "string"}
	case pointer.Implements(textType):
		return setText, []string{"string"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return setAs("a boolean", reflect.Value.SetBool), []string{"boolean"}
	case reflect.String:
		return setAs("a string", reflect.Value.SetString), []string{"string"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return setInt, []string{"number"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return setUint, []string{"number"}
	case reflect.Float32, reflect.Float64:
		return setFloat, []string{"number"}
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return setAny, jsonTypes
		}
	}
	return nil, nil
}

// jsonTypes are the types of values that a schema can name, integers among the numbers.
var jsonTypes = []string{"boolean", "number", "string", "array", "object", "null"}

// checkType returns an error if t can hold no type of value that any of schemas allows.
// Null alone does not make a type fit. A pointer can hold the types that
// its element can hold.
func checkType(t reflect.Type, schemas []*jsonschema.Schema) error {
	_, takes := scalar(t)
	switch {
	case takes != nil:
	case t.Kind() == reflect.Map, t.Kind() == reflect.Struct:
		takes = []string{"object"}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		takes = []string{"array", "string"}
	case t.Kind() == reflect.Slice, t.Kind() == reflect.Array:
		takes = []string{"array"}
	default:
		return nil
	}
	var allowed []string
	for _, name := range jsonTypes {
		allows := func(js *jsonschema.Schema) bool { return allowsType(js, name) }
		if slices.ContainsFunc(schemas, allows) {
			allowed = append(allowed, name)
		}
	}
	fits := func(name string) bool { return slices.Contains(takes, name) }
	if len(allowed) > 0 && !slices.ContainsFunc(allowed, fits) {
		return fmt.Errorf("type %v cannot hold the values of the schema, which must be %s", t, typeNames(allowed))
	}
	return nil // or no value is allowed, which the schema sees to
}

// allowsType reports whether js may allow values of a type: it looks at the keywords that
// name types, in js and in what js requires of the same value. The compiler has refused
// schemas that would not end here.
func allowsType(js *jsonschema.Schema, name string) bool {
	allows := func(sub *jsonschema.Schema) bool { return allowsType(sub, name) }
	named := func(t string) bool { return t == name || t == "integer" && name == "number" }
	return (js.Always == nil || *js.Always) &&
		(js.Types == nil || slices.ContainsFunc(js.Types, named)) &&
		(js.Ref == nil || allows(js.Ref)) &&
		!slices.ContainsFunc(js.AllOf, func(sub *jsonschema.Schema) bool { return !allows(sub) }) &&
		(js.AnyOf == nil || slices.ContainsFunc(js.AnyOf, allows)) &&
		(js.OneOf == nil || slices.ContainsFunc(js.OneOf, allows))
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

// list returns the setter of a slice or an array.
func (m setters) list(t reflect.Type, schemas []*jsonschema.Schema) (setter, error) {
	var items []*jsonschema.Schema
	for _, js := range schemas {
		items = append(items, itemSchemas(js)...)
	}
	elem, err := m.of(t.Elem(), items)
	if err != nil {
		return nil, err
	}
	isSlice := t.Kind() == reflect.Slice
	isBytes := isSlice && t.Elem().Kind() == reflect.Uint8
	return func(dst reflect.Value, v any) *problem {
		items, ok := v.([]any)
		switch {
		case v == nil && isSlice:
			dst.SetZero()
			return nil
		case !ok && isBytes:
			return setBytes(dst, v)
		case !ok:
			return &problem{detail: "must be an array"}
		case isSlice:
			dst.Set(reflect.MakeSlice(t, len(items), len(items)))
		case len(items) > t.Len():
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
		members, p := as[map[string]any](v, "an object")
		if p != nil {
			return p
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

// field is a field of a struct, or of a struct embedded in it, that a member sets.
type field struct {
	name  string // of the member
	path  string // of names in Go
	index []int
	t     reflect.Type
	rival string // path of another field for the member, as deep as this one
}

// fieldsOf returns the fields of a struct type: an embedded struct without a name in
// its tag lends its fields, of which those with the name of a less nested one are hidden.
func fieldsOf(t reflect.Type) ([]field, error) {
	var all []field
	for i := range t.NumField() {
		sf := t.Field(i)
		lent, err := fieldsOfField(sf)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", sf.Name, err)
		}
		for _, f := range lent {
			f.index = append([]int{i}, f.index...)
			f.path = strings.TrimSuffix(sf.Name+"."+f.path, ".")
			if f.rival != "" {
				f.rival = sf.Name + "." + f.rival
			}
			same := slices.IndexFunc(all, func(other field) bool { return other.name == f.name })
			switch {
			case same < 0:
				all = append(all, f)
			case len(f.index) < len(all[same].index):
				all[same] = f
			case len(f.index) == len(all[same].index):
				all[same].rival = f.path
			}
		}
	}
	return all, nil
}

// fieldsOfField returns a field of a struct, or the fields that an embedded one lends.
func fieldsOfField(sf reflect.StructField) ([]field, error) {
	tag := sf.Tag.Get("json")
	name, options, _ := strings.Cut(tag, ",")
	switch {
	case tag == "-":
		return nil, nil
	case sf.Anonymous && name == "" && sf.Type.Kind() == reflect.Struct:
		return fieldsOf(sf.Type)
	case sf.Anonymous && name == "" && sf.Type.Kind() == reflect.Pointer:
		return nil, fmt.Errorf("an embedded pointer is not supported")
	case sf.Anonymous && !sf.IsExported() && sf.Type.Kind() == reflect.Struct:
		return nil, fmt.Errorf("an embedded struct that is not exported must have no name in its tag")
	case !sf.IsExported():
		return nil, nil
	case slices.Contains(strings.Split(options, ","), "string"):
		return nil, fmt.Errorf("the tag option string is not supported")
	}
	return []field{{name: cmp.Or(name, sf.Name), t: sf.Type}}, nil
}

func (m setters) structure(t reflect.Type, schemas []*jsonschema.Schema) (setter, error) {
	fields, err := fieldsOf(t)
	if err != nil {
		return nil, err
	}
	sets := make([]setter, len(fields))
	for i, f := range fields {
		if f.rival != "" {
			return nil, fmt.Errorf("field %s: is the second field for the member %q", f.rival, f.name)
		}
		var subs []*jsonschema.Schema
		for _, js := range schemas {
			subs = append(subs, memberSchemas(js, f.name)...)
		}
		if len(subs) == 0 {
			return nil, fmt.Errorf("field %s: the schema does not describe a member %q", f.path, f.name)
		}
		if sets[i], err = m.of(f.t, subs); err != nil {
			return nil, fmt.Errorf("field %s: %w", f.path, err)
		}
	}
	return func(dst reflect.Value, v any) *problem {
		members, p := as[map[string]any](v, "an object")
		if p != nil {
			return p
		}
		for i := range fields {
			f := &fields[i]
			value, ok := members[f.name]
			if !ok {
				continue
			}
			if p := sets[i](dst.FieldByIndex(f.index), value); p != nil {
				return p.within(f.name)
			}
		}
		return nil
	}, nil
}
