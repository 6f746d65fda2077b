package interleave

import (
	"flag"
	"strconv"
	"testing"

	"github.com/animalstore/gatehouse/internal/interleave/cases"
)

var (
	deep        = flag.Bool("deep", false, "one preemption more, and larger cases with the usual number of preemptions")
	preemptions = flag.Int("preemptions", 2, "how many preemptions a schedule has at most")
	schedule    = flag.String("schedule", "", "the one `schedule` to run of the case that -run chooses")
	folder      = flag.String("engine", engine, "the `folder` with the sources of package memory")
)

// Under every schedule, some order of the calls explains what they were answered.
func TestSchedules(t *testing.T) {
	binary := build(t, sources(t, *folder))
	for _, c := range cases.All() {
		most := *preemptions
		switch {
		case c.Large && !*deep:
			continue
		case *deep && !c.Large:
			most++
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			if out, failed := run(t, binary, c.Name, "-schedule", *schedule, "-preemptions", strconv.Itoa(most)); failed {
				t.Error(out)
			} else {
				t.Log(out)
			}
		})
	}
}
