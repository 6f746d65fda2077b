//go:build !linux

package benchmarks

import "time"

// threadTime returns 0: not known.
func threadTime() time.Duration { return 0 }
