// Package runtime has the API of the standard package of this name, as far as package
// memory uses it.
package runtime

import "github.com/animalstore/gatehouse/ratelimit/internal/interleave/sched"

// Gosched waits until another thread writes to the place that the caller read last. A
// caller that goes on without it would read the same again.
func Gosched() { sched.AwaitWrite() }
