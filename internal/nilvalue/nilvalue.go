// Package nilvalue finds a nil that hides in an interface:
//
//	var limiter *memory.Limiter // and nothing sets it
//	limit.New(limiter, identify, limit.Options{})
//
// The interface is not nil there, and its first method would panic, at the first request.
// Constructors refuse it as they refuse nil.
package nilvalue

import (
	"bytes"
	"reflect"
)

// In reports whether v is nil, or holds a nil pointer or a nil function. A nil map or
// slice can have methods that work, as those of an empty one.
func In(v any) bool {
	r := reflect.ValueOf(v)
	return v == nil || (r.Kind() == reflect.Pointer || r.Kind() == reflect.Func) && r.IsNil()
}

// InEngine reports whether l is nil in this way, or the zero memory.Limiter, whose methods
// would panic too. Its secret is zero, which memory.New refuses.
func InEngine(l any) bool {
	if In(l) {
		return true
	}
	keyed, ok := l.(interface{ Secret() []byte })
	return ok && len(bytes.Trim(keyed.Secret(), "\x00")) == 0
}
