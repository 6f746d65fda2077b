package jsonbody

import (
	"fmt"
	"math"
	"math/big"
	"reflect"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// checkKinds returns an error if t can hold no kind of value that any of schemas allows.
// Null alone does not make a type fit.
func checkKinds(t reflect.Type, schemas []*jsonschema.Schema) error {
	k := allowedByAny(schemas)
	others := k &^ nulls
	if others == 0 {
		others = k
	}
	if others == 0 || others&heldBy(t) != 0 {
		return nil // or no value is allowed, which the schema sees to
	}
	reason := ""
	switch pointer := reflect.PointerTo(t); {
	case heldBy(t) == texts && pointer.Implements(textType):
		reason = ": its UnmarshalText gets only strings"
	case heldBy(t) == scalars && pointer.Implements(jsonType):
		reason = ": its UnmarshalJSON gets no objects or arrays"
	}
	return fmt.Errorf("type %v cannot hold the values of the schema, which must be %v%s", t, k, reason)
}

// checkValues returns an error if each of schemas requires something that no value of t,
// which set sets, can satisfy.
func checkValues(t reflect.Type, schemas []*jsonschema.Schema, set setter) (err error) {
	for _, js := range schemas {
		need := unsatisfied(t, required(js), set)
		if need == "" {
			return nil
		}
		err = fmt.Errorf("type %v cannot hold the values of the schema, which %s", t, need)
	}
	return err
}

// required returns js and the schemas that every value of js satisfies.
func required(js *jsonschema.Schema) []*jsonschema.Schema {
	all := []*jsonschema.Schema{js}
	if js.Ref != nil {
		all = append(all, required(js.Ref)...)
	}
	for _, sub := range js.AllOf {
		all = append(all, required(sub)...)
	}
	return all
}

// unsatisfied returns a requirement of one of schemas that no value of t can satisfy, or "".
func unsatisfied(t reflect.Type, schemas []*jsonschema.Schema, set setter) string {
	least, most := bounds(t)
	for _, js := range schemas {
		switch {
		case js.Constant != nil && !holdsOne(t, js.Constant, set):
			return requirement(js, "const")
		case len(enumOf(js)) > 0 && !holdsOne(t, enumOf(js), set):
			return requirement(js, "enum")
		case t.Kind() == reflect.Array && js.MinItems > t.Len():
			return requirement(js, "minItems")
		case least == nil:
		case js.Minimum != nil && js.Minimum.Cmp(most) > 0:
			return requirement(js, "minimum")
		case js.ExclusiveMinimum != nil && js.ExclusiveMinimum.Cmp(most) >= 0:
			return requirement(js, "exclusiveMinimum")
		case js.Maximum != nil && js.Maximum.Cmp(least) < 0:
			return requirement(js, "maximum")
		case js.ExclusiveMaximum != nil && js.ExclusiveMaximum.Cmp(least) <= 0:
			return requirement(js, "exclusiveMaximum")
		}
	}
	return ""
}

// holdsOne reports whether t can hold one of values. It does not try objects and arrays,
// whose parts may be of a type that has no setter yet.
func holdsOne(t reflect.Type, values []any, set setter) bool {
	for _, v := range values {
		if kindOf(v)&(arrays|objects) != 0 || set(reflect.New(t).Elem(), v) == nil {
			return true
		}
	}
	return false
}

// bounds returns the least and the greatest value of an integer type, and nil for others.
func bounds(t reflect.Type) (least, most *big.Rat) {
	if heldBy(t) != integers || t == bigIntType {
		return nil, nil
	}
	v := reflect.New(t).Elem()
	if v.CanInt() {
		shift := 64 - t.Bits()
		return new(big.Rat).SetInt64(math.MinInt64 >> shift), new(big.Rat).SetInt64(math.MaxInt64 >> shift)
	}
	return new(big.Rat), new(big.Rat).SetUint64(math.MaxUint64 >> (64 - t.Bits()))
}
