// Package atomic has the API of sync/atomic, with a step of the scheduler of package sched
// before each operation, as far as package memory uses it.
package atomic

import (
	"fmt"
	"unsafe"

	"github.com/animalstore/gatehouse/ratelimit/internal/interleave/sched"
)

func LoadUint64(p *uint64) uint64                        { return load(p) }
func StoreUint64(p *uint64, v uint64)                    { store(p, v) }
func CompareAndSwapUint64(p *uint64, old, v uint64) bool { return compareAndSwap(p, old, v) }

// value is what the types have in common.
type value[T comparable] struct{ v T }

func (x *value[T]) Load() T                      { return load(&x.v) }
func (x *value[T]) Store(v T)                    { store(&x.v, v) }
func (x *value[T]) CompareAndSwap(old, v T) bool { return compareAndSwap(&x.v, old, v) }

func (x *value[T]) Swap(v T) T {
	return update(&x.v, "swap", func(T) T { return v })
}

// number is what the types of numbers have beside that.
type number[T int64 | uint64] struct{ value[T] }

func (x *number[T]) Add(delta T) T {
	return delta + update(&x.v, "add", func(old T) T { return old + delta })
}

// The types have the methods that those of sync/atomic have.
type (
	Bool           struct{ value[bool] }
	Int64          struct{ number[int64] }
	Uint64         struct{ number[uint64] }
	Pointer[T any] struct{ value[*T] }
)

// The operations on a place, each one step. The scheduler lets one thread run at
// a time, so that plain reads and writes do.

func load[T any](p *T) T {
	sched.Step(unsafe.Pointer(p), sched.Read, "load", nil)
	sched.Result(func() string { return text(*p) })
	return *p
}

func store[T any](p *T, v T) { update(p, "store", func(T) T { return v }) }

func compareAndSwap[T comparable](p *T, old, v T) bool {
	sched.Step(unsafe.Pointer(p), sched.Write, "cas", nil)
	now := *p
	if now != old {
		sched.Result(func() string { return text(old) + " failed: " + text(now) })
		return false
	}
	*p = v
	sched.Result(func() string { return text(old) + " -> " + text(v) })
	return true
}

// update replaces a value by f of it, and returns the old one.
func update[T any](p *T, what string, f func(T) T) (old T) {
	sched.Step(unsafe.Pointer(p), sched.Write, what, nil)
	old = *p
	*p = f(old)
	sched.Result(func() string { return text(old) + " -> " + text(*p) })
	return old
}

func text(v any) string {
	switch v := v.(type) {
	case bool:
		return fmt.Sprint(v)
	case int64, uint64:
		return fmt.Sprintf("%#x", v)
	}
	return "pointer"
}
