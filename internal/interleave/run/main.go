// Command run tries the schedules of one case on package memory as it was built
// with it. The tests of package interleave build it with traced atomics; with
// those of the standard library there is nothing to schedule.
package main

import "github.com/animalstore/gatehouse/internal/interleave/cases"

func main() { cases.Main() }
