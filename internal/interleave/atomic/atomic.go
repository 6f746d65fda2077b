// Package atomic has the API of sync/atomic, with a step of the scheduler of
// package sched before each operation. What package memory does not use yet, such
// as Value and LoadPointer, is missing.
package atomic

func LoadInt32(p *int32) int32                        { return load(p) }
func StoreInt32(p *int32, v int32)                    { store(p, v) }
func SwapInt32(p *int32, v int32) int32               { return swap(p, v) }
func CompareAndSwapInt32(p *int32, old, v int32) bool { return compareAndSwap(p, old, v) }
func AddInt32(p *int32, delta int32) int32            { return add(p, delta) }
func AndInt32(p *int32, mask int32) int32             { return and(p, mask) }
func OrInt32(p *int32, mask int32) int32              { return or(p, mask) }

func LoadInt64(p *int64) int64                        { return load(p) }
func StoreInt64(p *int64, v int64)                    { store(p, v) }
func SwapInt64(p *int64, v int64) int64               { return swap(p, v) }
func CompareAndSwapInt64(p *int64, old, v int64) bool { return compareAndSwap(p, old, v) }
func AddInt64(p *int64, delta int64) int64            { return add(p, delta) }
func AndInt64(p *int64, mask int64) int64             { return and(p, mask) }
func OrInt64(p *int64, mask int64) int64              { return or(p, mask) }

func LoadUint32(p *uint32) uint32                        { return load(p) }
func StoreUint32(p *uint32, v uint32)                    { store(p, v) }
func SwapUint32(p *uint32, v uint32) uint32              { return swap(p, v) }
func CompareAndSwapUint32(p *uint32, old, v uint32) bool { return compareAndSwap(p, old, v) }
func AddUint32(p *uint32, delta uint32) uint32           { return add(p, delta) }
func AndUint32(p *uint32, mask uint32) uint32            { return and(p, mask) }
func OrUint32(p *uint32, mask uint32) uint32             { return or(p, mask) }

func LoadUint64(p *uint64) uint64                        { return load(p) }
func StoreUint64(p *uint64, v uint64)                    { store(p, v) }
func SwapUint64(p *uint64, v uint64) uint64              { return swap(p, v) }
func CompareAndSwapUint64(p *uint64, old, v uint64) bool { return compareAndSwap(p, old, v) }
func AddUint64(p *uint64, delta uint64) uint64           { return add(p, delta) }
func AndUint64(p *uint64, mask uint64) uint64            { return and(p, mask) }
func OrUint64(p *uint64, mask uint64) uint64             { return or(p, mask) }

func LoadUintptr(p *uintptr) uintptr                        { return load(p) }
func StoreUintptr(p *uintptr, v uintptr)                    { store(p, v) }
func SwapUintptr(p *uintptr, v uintptr) uintptr             { return swap(p, v) }
func CompareAndSwapUintptr(p *uintptr, old, v uintptr) bool { return compareAndSwap(p, old, v) }
func AddUintptr(p *uintptr, delta uintptr) uintptr          { return add(p, delta) }
func AndUintptr(p *uintptr, mask uintptr) uintptr           { return and(p, mask) }
func OrUintptr(p *uintptr, mask uintptr) uintptr            { return or(p, mask) }

// number is what the types of numbers have in common.
type number[T integer] struct{ v T }

func (x *number[T]) Load() T                      { return load(&x.v) }
func (x *number[T]) Store(v T)                    { store(&x.v, v) }
func (x *number[T]) Swap(v T) T                   { return swap(&x.v, v) }
func (x *number[T]) CompareAndSwap(old, v T) bool { return compareAndSwap(&x.v, old, v) }
func (x *number[T]) Add(delta T) T                { return add(&x.v, delta) }
func (x *number[T]) And(mask T) T                 { return and(&x.v, mask) }
func (x *number[T]) Or(mask T) T                  { return or(&x.v, mask) }

// The types of numbers. Those of sync/atomic have the same methods.
type (
	Int32   struct{ number[int32] }
	Int64   struct{ number[int64] }
	Uint32  struct{ number[uint32] }
	Uint64  struct{ number[uint64] }
	Uintptr struct{ number[uintptr] }
)

// A Bool is a traced boolean.
type Bool struct{ v bool }

func (x *Bool) Load() bool                      { return load(&x.v) }
func (x *Bool) Store(v bool)                    { store(&x.v, v) }
func (x *Bool) Swap(v bool) bool                { return swap(&x.v, v) }
func (x *Bool) CompareAndSwap(old, v bool) bool { return compareAndSwap(&x.v, old, v) }

// A Pointer is a traced pointer.
type Pointer[T any] struct{ v *T }

func (x *Pointer[T]) Load() *T                      { return load(&x.v) }
func (x *Pointer[T]) Store(v *T)                    { store(&x.v, v) }
func (x *Pointer[T]) Swap(v *T) *T                  { return swap(&x.v, v) }
func (x *Pointer[T]) CompareAndSwap(old, v *T) bool { return compareAndSwap(&x.v, old, v) }
