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
