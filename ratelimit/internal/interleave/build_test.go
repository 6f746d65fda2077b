package interleave

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/internal/testcheck"

	// A change of these makes go test run again.
	_ "github.com/animalstore/gatehouse/ratelimit/enginetest"
	_ "github.com/animalstore/gatehouse/ratelimit/internal/interleave/sync"
)

var must = testcheck.NoError

// engine is the folder of package memory.
const engine = "../../memory"

// The import paths of package memory, and of this folder.
const (
	memory = "github.com/animalstore/gatehouse/ratelimit/memory"
	here   = "github.com/animalstore/gatehouse/ratelimit/internal/interleave"
)

// traced are the packages that stand in for those of the standard library.
var traced = map[string]string{
	"sync":        here + "/sync",
	"sync/atomic": here + "/atomic",
	"runtime":     here + "/runtime",
}

// sources returns the text of the package in a folder, by file name.
func sources(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	must(t, err)
	files := map[string][]byte{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		must(t, err)
		files[filepath.Base(name)] = text
	}
	return files
}

// trace replaces what a file imports by the traced packages. Lines keep their
// numbers. A file must not import another package that might have atomics of its
// own.
func trace(name string, text []byte) ([]byte, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	done := 0
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(path, memory) {
			return nil, fmt.Errorf("%s imports %s, whose atomics would not be traced: let build rewrite it as well", name, path)
		}
		if instead := traced[path]; instead != "" {
			at := set.Position(spec.Path.Pos()).Offset
			out.Write(text[done:at])
			out.WriteString(strconv.Quote(instead))
			done = at + len(spec.Path.Value)
		}
	}
	out.Write(text[done:])
	return out.Bytes(), nil
}

// build builds the command that runs cases with the given sources in place of
// those of package memory, and returns its path.
func build(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	folder, err := filepath.Abs(engine)
	must(t, err)
	sources(t, "run") // a change of which makes go test run again
	replace := map[string]string{}
	for name := range sources(t, engine) {
		replace[filepath.Join(folder, name)] = "" // not there, unless it is one of files
	}
	for name, text := range files {
		text, err := trace(name, text)
		must(t, err)
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, text, 0o600))
		replace[filepath.Join(folder, name)] = path
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	must(t, err)
	path := filepath.Join(dir, "overlay.json")
	must(t, os.WriteFile(path, overlay, 0o600))
	binary := filepath.Join(dir, "run.exe")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-overlay", path, "-o", binary, "./run")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("package memory does not build with the traced packages: %v\n%s\n"+
			"What is undefined in atomic or sync must be added to the package of that name here.", err, out)
	}
	return binary
}

// run runs cases. It returns what the command printed, and whether a case failed.
func run(t *testing.T, binary string, args ...string) (out string, failed bool) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() > 1 {
		t.Fatal(fmt.Errorf("%v: %w\n%s", cmd, err, text))
	}
	return string(text), err != nil
}
