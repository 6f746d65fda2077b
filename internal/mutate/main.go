// Command mutate makes small changes to the sources of a package, one at a
// time, and reports those that no test notices. Run it at the root of the
// repository:
//
//	go run ./internal/mutate -sample 100 ./ratelimit/memory
//	go run ./internal/mutate -files 'take|account' -tests ./ratelimit/memory,./ratelimit/redislimit/internal/histories ./ratelimit/memory
//
// No file is changed: the tests are built through go build's -overlay. The command
// skips a change that does not compile or does not change the test binary. A change
// that makes the tests hang counts as noticed. With -last, slow tests
// run only for the changes that the others do not notice.
//
// If no test notices a change, either a test is missing or the change makes no
// difference. List changes that make no difference, with the reason, in
// testdata/equivalent.txt of the package:
//
//	# A reason, which holds for all changes up to the next empty line.
//	take.go: if left < d.Cost {  ->  if left <= d.Cost {
//
// Write each change as the command prints it, without the line number. The command
// skips these changes, and reports a line of the file that is no longer a change. It
// exits with status 1 if a change was not noticed, and with 2 if it fails.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	var r runner
	sample := flag.Int("sample", 0, "how many changes to try, chosen at random; 0: all")
	seed := flag.Uint64("seed", 1, "the `seed` of that choice")
	files := flag.String("files", "", "only files whose names match this regular expression")
	tests := flag.String("tests", "", "comma-separated packages whose tests are run; default: the package itself")
	flag.IntVar(&r.parallel, "parallel", 2, "how many changes are tried at once")
	flag.StringVar(&r.last, "last", "", "run tests that match this regular expression, the slow ones, only if the others pass")
	flag.StringVar(&r.skip, "skip", "", "run no tests that match this regular expression")
	flag.DurationVar(&r.timeout, "timeout", 0, "the longest that the tests of one package may take; 0: what they take without a change, five times over, and 10s more")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "mutate: name one package directory, such as ./ratelimit/memory")
		os.Exit(2)
	}
	if r.packages = strings.Split(*tests, ","); *tests == "" {
		r.packages = []string{flag.Arg(0)}
	}
	survivors, err := run(&r, flag.Arg(0), *files, *sample, *seed)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	}
	if survivors > 0 {
		os.Exit(1)
	}
}

func run(r *runner, pkg, files string, sample int, seed uint64) (survivors int, err error) {
	all, err := collect(pkg, files)
	if err != nil {
		return 0, err
	}
	known, err := readEquivalents(filepath.Join(pkg, "testdata", "equivalent.txt"))
	if err != nil {
		return 0, err
	}
	found := len(all)
	all = slices.DeleteFunc(all, known.has)
	listed := found - len(all)
	if files == "" {
		for _, line := range known.unused() {
			fmt.Println("listed as equivalent, but no change any more:", line)
		}
	}
	all = choose(all, sample, seed)
	if r.dir, err = os.MkdirTemp("", "mutate"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(r.dir)
	began := time.Now()
	if err := r.baseline(); err != nil {
		return 0, err
	}
	counts := map[result]int{}
	r.each(all, func(m mutation, res result) {
		if counts[res]++; res == notNoticed {
			fmt.Println("not noticed:", m)
		}
	})
	fmt.Printf("%d changes in %v: %d noticed, %d not noticed, %d do not compile, %d compile to the same; %d others listed as equivalent\n",
		len(all), time.Since(began).Round(time.Second), counts[noticed], counts[notNoticed], counts[notCompiled], counts[same], listed)
	return counts[notNoticed], nil
}

// collect returns the mutations of the package's sources.
func collect(pkg, files string) ([]mutation, error) {
	pattern, err := regexp.Compile(files)
	if err != nil {
		return nil, err
	}
	names, err := filepath.Glob(filepath.Join(pkg, "*.go"))
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return strings.HasSuffix(name, "_test.go") || !pattern.MatchString(filepath.Base(name))
	})
	if len(names) == 0 {
		return nil, fmt.Errorf("no source in %s matches %q", pkg, files)
	}
	var all []mutation
	for _, name := range names {
		found, err := mutations(name)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}
