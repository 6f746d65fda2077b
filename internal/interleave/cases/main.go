package cases

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/animalstore/gatehouse/internal/interleave/sched"
)

// Main is the command that runs one case. It exits with status 1 if a schedule
// fails, after it printed each step of it, and with 2 if it was called wrongly.
func Main() {
	name := flag.String("case", "", "the `name` of the case")
	preemptions := flag.Int("preemptions", 2, "how many preemptions a schedule has at most")
	schedule := flag.String("schedule", "", "the one `schedule` to run, such as \"A17 B8 A40\"")
	flag.Parse()
	runtime.GOMAXPROCS(1) // one thread of the case runs at a time, and cases run side by side
	debug.SetGCPercent(1000)
	c, err := find(*name)
	failed := false
	if err == nil {
		failed, err = c.run(*preemptions, sched.Schedule(*schedule))
	}
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	case failed:
		os.Exit(1)
	}
}

func find(name string) (Case, error) {
	for _, c := range All() {
		if c.Name == name {
			return c, nil
		}
	}
	return Case{}, fmt.Errorf("there is no case %q", name)
}

// run tries all schedules with so many preemptions, or the given one, and prints
// what came of it.
func (c *Case) run(preemptions int, schedule sched.Schedule) (failed bool, err error) {
	x := &execution{c: c, checked: map[history]string{}}
	program := sched.Program{Start: x.start, End: x.end}
	if schedule == "" {
		runs, failure := sched.Explore(program, sched.Options{Preemptions: preemptions})
		fmt.Printf("%d schedules with at most %d preemptions\n", runs, preemptions)
		if failure == nil {
			return false, nil
		}
		schedule = failure.Schedule
	}
	failure, events, err := sched.Replay(program, schedule)
	if err != nil {
		return false, err
	}
	fmt.Print(sched.Print(events))
	if failure == nil {
		fmt.Println("this schedule does not fail")
		return false, nil
	}
	fmt.Printf("%s\nto run this schedule again:\n  go test ./internal/interleave -run 'TestSchedules/%s$' -v -schedule '%s'\n",
		failure.Text, strings.ReplaceAll(c.Name, " ", "_"), failure.Schedule)
	return true, nil
}
