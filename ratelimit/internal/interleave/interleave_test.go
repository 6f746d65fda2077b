package interleave

import (
	"flag"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/internal/testenv"
)

var (
	deep        = flag.Bool("deep", false, "one preemption more, and larger cases with the usual number of preemptions")
	preemptions = flag.Int("preemptions", 0, "how many preemptions a schedule has at most; 0: two with -long or -deep, otherwise one")
	schedule    = flag.String("schedule", "", "the one `schedule` to run of the case that -run chooses")
	folder      = flag.String("engine", engine, "the `folder` with the sources of package memory")
)

// Under every schedule, some order of the calls explains what they were answered.
func TestSchedules(t *testing.T) {
	binary := build(t, sources(t, *folder))
	names, err := exec.Command(binary).Output()
	must(t, err)
	small, large, _ := strings.Cut(strings.TrimSpace(string(names)), "\n\n")
	most := *preemptions
	if most == 0 {
		most = 1
		if *deep || testenv.IsLong() {
			most = 2
		}
	}
	if *deep {
		runAll(t, binary, large, most)
		most++
	}
	runAll(t, binary, small, most)
}

func runAll(t *testing.T, binary, names string, preemptions int) {
	t.Helper()
	for name := range strings.SplitSeq(names, "\n") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out, failed := run(t, binary, name, "-schedule", *schedule, "-preemptions", strconv.Itoa(preemptions)); failed {
				t.Error(out)
			} else {
				t.Log(out)
			}
		})
	}
}
