// Command run tries the schedules of cases on package memory as it was built
// with it. The tests of package interleave build it with traced atomics; with
// those of the standard library there is nothing to schedule. It exits with status 1 if a
// schedule fails, after it printed each step of it, and with 2 if it was called wrongly.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/animalstore/gatehouse/ratelimit/internal/interleave/sched"
)

func main() {
	preemptions := flag.Int("preemptions", 2, "how many preemptions a schedule has at most")
	schedule := flag.String("schedule", "", "the one `schedule` to run, such as \"A17 B8 A40\"")
	flag.Parse()
	if flag.NArg() == 0 { // print the names, those of large cases after an empty line
		for _, r := range slices.Concat(cases, []row{{}}, largeCases) {
			fmt.Println(r.name)
		}
		return
	}
	runtime.GOMAXPROCS(1) // one thread of a case runs at a time, and commands run side by side
	debug.SetGCPercent(1000)
	status := 0
	for _, name := range flag.Args() {
		failed, err := false, fmt.Errorf("there is no case %q", name)
		for _, r := range slices.Concat(cases, largeCases) {
			if r.name == name {
				fmt.Print(name, ": ")
				failed, err = parse(r).run(*preemptions, sched.Schedule(*schedule))
			}
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		if failed {
			status = 1
		}
	}
	os.Exit(status)
}

// run tries all schedules with so many preemptions, or the given one, and prints
// what came of it.
func (c *testCase) run(preemptions int, schedule sched.Schedule) (failed bool, err error) {
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
	fmt.Printf("%s\nto run this schedule again:\n  go test ./ratelimit/internal/interleave -run TestSchedules -v -case '%s' -schedule '%s'\n",
		failure.Text, c.name, failure.Schedule)
	return true, nil
}
