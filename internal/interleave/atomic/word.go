package atomic

import (
	"fmt"
	"unsafe"

	"github.com/animalstore/gatehouse/internal/interleave/sched"
)

// The operations on a place, each one step. The scheduler lets one thread run at
// a time, so that plain reads and writes do.

func load[T any](p *T) T {
	sched.Step(unsafe.Pointer(p), sched.Read, "load", nil)
	v := *p
	if sched.Tracing() {
		sched.Result(text(v))
	}
	return v
}

func store[T any](p *T, v T) {
	sched.Step(unsafe.Pointer(p), sched.Write, "store", nil)
	*p = v
	if sched.Tracing() {
		sched.Result(text(v))
	}
}

func swap[T any](p *T, v T) T {
	sched.Step(unsafe.Pointer(p), sched.Write, "swap", nil)
	old := *p
	*p = v
	if sched.Tracing() {
		sched.Result(text(old) + " -> " + text(v))
	}
	return old
}

func compareAndSwap[T comparable](p *T, old, v T) bool {
	sched.Step(unsafe.Pointer(p), sched.Write, "cas", nil)
	now := *p
	if now == old {
		*p = v
	}
	if sched.Tracing() {
		if now == old {
			sched.Result(text(old) + " -> " + text(v))
		} else {
			sched.Result(text(old) + " failed: " + text(now))
		}
	}
	return now == old
}

type integer interface {
	~int32 | ~int64 | ~uint32 | ~uint64 | ~uintptr
}

// update replaces a number by f of it, and returns both.
func update[T integer](p *T, what string, f func(T) T) (old, v T) {
	sched.Step(unsafe.Pointer(p), sched.Write, what, nil)
	old = *p
	v = f(old)
	*p = v
	if sched.Tracing() {
		sched.Result(text(old) + " -> " + text(v))
	}
	return old, v
}

func add[T integer](p *T, delta T) T {
	_, v := update(p, "add", func(n T) T { return n + delta })
	return v
}

func and[T integer](p *T, mask T) T {
	old, _ := update(p, "and", func(n T) T { return n & mask })
	return old
}

func or[T integer](p *T, mask T) T {
	old, _ := update(p, "or", func(n T) T { return n | mask })
	return old
}

func text(v any) string {
	switch v := v.(type) {
	case bool:
		return fmt.Sprint(v)
	case int32, int64, uint32, uint64, uintptr:
		return fmt.Sprintf("%#x", v)
	}
	return "pointer"
}
