// Package sync has the API of the standard package of this name, as far as package
// memory uses it: mutexes that wait in the scheduler of package sched.
package sync

import (
	"unsafe"

	"github.com/animalstore/gatehouse/ratelimit/internal/interleave/sched"
)

// A Mutex is one that the scheduler knows of.
type Mutex struct{ locked bool }

func (m *Mutex) Lock() {
	sched.Step(unsafe.Pointer(m), sched.Write, "lock", func() bool { return !m.locked })
	m.locked = true
}

func (m *Mutex) Unlock() {
	sched.Step(unsafe.Pointer(m), sched.Write, "unlock", nil)
	if !m.locked {
		panic("sync: unlock of unlocked mutex")
	}
	m.locked = false
}

// An RWMutex is one that the scheduler knows of.
type RWMutex struct {
	writing Mutex
	readers int
}

func (m *RWMutex) Lock() {
	sched.Step(unsafe.Pointer(m), sched.Write, "lock", func() bool { return !m.writing.locked && m.readers == 0 })
	m.writing.locked = true
}

func (m *RWMutex) Unlock() { m.writing.Unlock() }

func (m *RWMutex) RLock() {
	sched.Step(unsafe.Pointer(m), sched.Write, "lock to read", func() bool { return !m.writing.locked })
	m.readers++
}

func (m *RWMutex) RUnlock() {
	sched.Step(unsafe.Pointer(m), sched.Write, "unlock after reading", nil)
	m.readers--
}
