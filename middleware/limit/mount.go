package limit

import (
	"errors"
	"net/http"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"weak"

	"github.com/animalstore/gatehouse/ratelimit"
)

var errSecondUnnamed = errors.New("limit: New: this engine already has a limit without Options.Name. " +
	"Give this one a Name, so that the two count and ban apart; or give both the same Name, so that they share usage and bans")

// unnamed has the engines that have a limit without a name. It keeps none of them alive.
var unnamed sync.Map // of weak.Pointer[byte]

// claim notes that l has a limit without a name, and reports whether this is the first one.
// Only engines that are pointers can be told apart.
func claim(l ratelimit.Limiter) bool {
	v := reflect.ValueOf(l)
	if v.Kind() != reflect.Pointer || v.Type().Elem().Size() == 0 {
		return true
	}
	first := (*byte)(v.UnsafePointer())
	engine := weak.Make(first)
	if _, claimed := unnamed.LoadOrStore(engine, nil); claimed {
		return false
	}
	runtime.AddCleanup(first, func(engine weak.Pointer[byte]) { unnamed.Delete(engine) }, engine)
	return true
}

// named returns identify with the name in front of all subjects.
func named(name string, identify func(*http.Request) (ratelimit.Caller, error)) func(*http.Request) (ratelimit.Caller, error) {
	return func(r *http.Request) (ratelimit.Caller, error) {
		c, err := identify(r)
		if c.Subject != "" {
			c.Subject = name + "/" + c.Subject
		}
		c.Also = slices.Clone(c.Also) // identify may return it for several requests
		for i := range c.Also {
			if s := &c.Also[i].Subject; *s != "" {
				*s = name + "/" + *s
			}
		}
		return c, err
	}
}
