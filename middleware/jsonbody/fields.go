package jsonbody

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// field is a field of a struct, or of a struct embedded in it, that a member sets.
type field struct {
	name   string // of the member
	path   string // of names in Go
	index  []int  // of each struct on the path
	t      reflect.Type
	tagged bool // name is from the tag
	quoted bool // the member is a string that contains the value
	err    error
}

// of returns the field of a struct, with the embedded pointers above it set.
func (f *field) of(v reflect.Value) reflect.Value {
	v = v.Field(f.index[0])
	for _, x := range f.index[1:] {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(x)
	}
	return v
}

// fieldsOf returns the fields of a struct type, as encoding/json has them: an embedded
// struct without a name in its tag lends its fields. Of several fields for a member, the
// least nested counts, and at the same depth the only tagged one. Where that leaves
// several, encoding/json ignores all of them; here it is an error.
func fieldsOf(t reflect.Type) ([]field, error) {
	var all []field
	above := make(map[reflect.Type]bool) // types of less nested structs
	for level := []field{{t: t}}; len(level) > 0; {
		var found, next []field
		for _, outer := range level {
			above[outer.t] = true
		}
		for _, outer := range level {
			for i := range outer.t.NumField() {
				f, embedded, ok := outer.field(i)
				switch {
				case ok && !embedded:
					found = append(found, f)
				case ok && !above[f.t]:
					next = append(next, f)
				}
			}
		}
		level = next
		for _, f := range dominant(found) {
			if slices.ContainsFunc(all, func(less field) bool { return less.name == f.name }) {
				continue
			}
			if f.err != nil {
				return nil, fmt.Errorf("field %s: %w", f.path, f.err)
			}
			all = append(all, f)
		}
	}
	return all, nil
}

// dominant returns those of found, which are of one depth, that count.
func dominant(found []field) []field {
	var all []field
	for _, f := range found {
		i := slices.IndexFunc(all, func(other field) bool { return other.name == f.name })
		switch {
		case i < 0:
			all = append(all, f)
		case f.tagged && !all[i].tagged:
			all[i] = f
		case f.tagged == all[i].tagged:
			all[i] = f
			all[i].err = fmt.Errorf("is the second field for the member %q", f.name)
		}
	}
	return all
}

// field returns the field i of the struct f, or an embedded struct with fields to lend.
// It returns false for a field that no member sets.
func (f field) field(i int) (inner field, embedded, ok bool) {
	sf := f.t.Field(i)
	t := sf.Type
	if t.Name() == "" && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	isStruct := t.Kind() == reflect.Struct
	tag := sf.Tag.Get("json")
	if tag == "-" || !sf.IsExported() && !(sf.Anonymous && isStruct) {
		return field{}, false, false
	}
	name, options, _ := strings.Cut(tag, ",")
	if strings.ContainsFunc(name, notInName) {
		name = ""
	}
	inner = field{
		name:   cmp.Or(name, sf.Name),
		path:   strings.TrimPrefix(f.path+"."+sf.Name, "."),
		index:  append(slices.Clip(f.index), i),
		t:      sf.Type,
		tagged: name != "",
		quoted: isScalar(t) && slices.Contains(strings.Split(options, ","), "string"),
		err:    f.err,
	}
	switch {
	case name != "" && !sf.IsExported():
		inner.err = errors.New("is embedded with a name and not exported")
	case name == "" && sf.Anonymous && isStruct:
		if sf.Type != t && !sf.IsExported() {
			inner.err = errors.New("is in an embedded pointer to a type that is not exported")
		}
		inner.t, embedded = t, true
	}
	return inner, embedded, true
}

// notInName reports whether encoding/json ignores a name with r in a tag.
func notInName(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r)
}

// isScalar reports whether the tag option string applies to t.
func isScalar(t reflect.Type) bool {
	return t.Kind() >= reflect.Bool && t.Kind() <= reflect.Float64 || t.Kind() == reflect.String
}
