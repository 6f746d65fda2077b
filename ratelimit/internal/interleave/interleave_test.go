package interleave

import (
	"flag"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/internal/testenv"
)

var (
	deep        = flag.Bool("deep", false, "one preemption more, and larger cases with the usual number of preemptions")
	preemptions = flag.Int("preemptions", 0, "how many preemptions a schedule has at most; 0: two with -long or -deep, otherwise one")
	one         = flag.String("case", "", "the `name` of the one case to run")
	schedule    = flag.String("schedule", "", "the one `schedule` to run of that case")
	folder      = flag.String("engine", engine, "the `folder` with the sources of package memory")
)

// Under every schedule, some order of the calls explains what they were answered.
func TestSchedules(t *testing.T) {
	binary := build(t, sources(t, *folder))
	names, err := exec.Command(binary).Output()
	must(t, err)
	small, large, _ := strings.Cut(strings.TrimSpace(string(names)), "\n\n")
	if *one != "" {
		small, large = *one, *one
	}
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

// runAll runs cases, some in each process: starting one takes longer than most cases.
func runAll(t *testing.T, binary, names string, preemptions int) {
	t.Helper()
	for cases := range slices.Chunk(strings.Split(names, "\n"), 12) {
		t.Run(cases[0], func(t *testing.T) {
			t.Parallel()
			args := append([]string{"-schedule", *schedule, "-preemptions", strconv.Itoa(preemptions)}, cases...)
			if out, failed := run(t, binary, args...); failed {
				t.Error(out)
			} else {
				t.Log(out)
			}
		})
	}
}
