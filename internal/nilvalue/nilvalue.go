// Package nilvalue finds a nil that hides in an interface:
//
//	var engine *memory.Limiter // and nothing sets it
//	limit.New(engine, identify, limit.Options{})
//
// The interface is not nil there, and its first method would panic, at the first request.
// Constructors refuse it as they refuse nil.
package nilvalue

import "reflect"

// In reports whether v is nil, or holds a nil pointer or a nil function. A nil map or
// slice can have methods that work, as those of an empty one.
func In(v any) bool {
	r := reflect.ValueOf(v)
	return v == nil || (r.Kind() == reflect.Pointer || r.Kind() == reflect.Func) && r.IsNil()
}
