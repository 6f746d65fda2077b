// Command mutate makes small changes to the sources of a package, one at a
// time, and reports those that no test notices. Run it at the root of the
// repository:
//
//	go run ./internal/mutate -sample 100 ./ratelimit/memory
//	go run ./internal/mutate -files 'decide|charge' -tests ./ratelimit/memory,./ratelimit/internal/histories ./ratelimit/memory
//
// No file is changed: the tests are built through go test -overlay. A change
// that does not compile is passed over, and one that makes the tests hang is
// noticed. A change that is not noticed is a promise without a test, or makes no
// difference; which of the two, only a reader can tell. The command exits with
// status 1 if there is one.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	sample := flag.Int("sample", 0, "how many changes to try, chosen at random; 0: all")
	seed := flag.Uint64("seed", 1, "what the choice at random begins with")
	files := flag.String("files", "", "only files whose names match this regular expression")
	tests := flag.String("tests", "", "comma-separated packages whose tests are run; default: the package itself")
	timeout := flag.Duration("timeout", time.Minute, "the longest a run of the tests may take, to build included")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "mutate: name one package directory, such as ./ratelimit/memory")
		os.Exit(2)
	}
	r := runner{timeout: *timeout, packages: strings.Split(*tests, ",")}
	if *tests == "" {
		r.packages = []string{flag.Arg(0)}
	}
	survivors, err := r.run(flag.Arg(0), *files, *sample, *seed)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	}
	if survivors > 0 {
		os.Exit(1)
	}
}

type runner struct {
	packages []string
	timeout  time.Duration
	dir      string // for the changed sources
}

func (r *runner) run(pkg, files string, sample int, seed uint64) (survivors int, err error) {
	all, err := collect(pkg, files)
	if err != nil {
		return 0, err
	}
	if r.dir, err = os.MkdirTemp("", "mutate"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(r.dir)
	if out, code := r.test("{}"); code != 0 {
		return 0, fmt.Errorf("the tests fail without any change:\n%s", out)
	}
	if sample > 0 && sample < len(all) {
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:sample]
	}
	var noticed, passed int
	for _, m := range all {
		overlay, err := r.overlay(m)
		if err != nil {
			return survivors, err
		}
		switch out, code := r.test(overlay); {
		case bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")):
			passed++
		case code == 0:
			survivors++
			fmt.Println("not noticed:", m)
		default:
			noticed++
		}
	}
	fmt.Printf("%d changes: %d noticed, %d not noticed, %d do not compile\n", len(all), noticed, survivors, passed)
	return survivors, nil
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

// overlay writes the changed source and returns the overlay that names it.
func (r *runner) overlay(m mutation) (string, error) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	path, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(r.dir, "changed.go")
	if err := os.WriteFile(changed, m.apply(source), 0o600); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	return string(text), err
}

// test runs the tests with an overlay.
func (r *runner) test(overlay string) (out []byte, code int) {
	name := filepath.Join(r.dir, "overlay.json")
	if err := os.WriteFile(name, []byte(overlay), 0o600); err != nil {
		return []byte(err.Error()), -1
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.timeout)
	defer cancel()
	args := append([]string{"test", "-overlay", name, "-failfast", "-vet=off", "-timeout", r.timeout.String()}, r.packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err == nil {
		return out, 0
	}
	return out, 1
}
