package compatibility

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/internal/testcheck"
)

// A behaviour is what a handler does, and a client that observes it.
type behaviour struct {
	name string

	// proof is a line that the bare handler must lead to, over HTTP/1.1 and over HTTP/2:
	// without it the comparison would show nothing. "" means that the behaviour is not
	// tried over that protocol.
	proof [2]string

	// serve is the handler. It notes what it finds with c.served.
	serve func(c *cell, w http.ResponseWriter, r *http.Request)

	// ask is the client. It notes what it gets with c.received. Nil: one GET.
	ask func(c *cell)

	// hijacks says that the handler itself writes the response, so that it need not
	// have the fields of the middleware.
	hijacks bool

	// closes says that the server is closed before the temporary files are counted,
	// since net/http removes them after the response.
	closes bool

	// removes names a field that the handler itself removes.
	removes string

	// unlike names a field that may differ, for a reason given where it is set.
	unlike string
}

func allBehaviours() []behaviour {
	return slices.Concat(contents, ranges, streams, interims, trailers, connections, aborts, requests, forms)
}

func TestMatrix(t *testing.T) {
	// Temporary files of forms are counted here.
	file, dir := largeFile(t), t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir)
	defer servers.Wait()
	for _, b := range allBehaviours() {
		for protocol, proof := range b.proof {
			if proof == "" {
				continue
			}
			t.Run(b.name+"/"+[]string{"http1", "http2"}[protocol], func(t *testing.T) {
				want := observe(t, b, protocol == 1, dir, file, wrapped{})
				if !slices.ContainsFunc(want, func(line string) bool { return strings.Contains(line, proof) }) {
					t.Fatalf("without a middleware, no line contains %q:\n%s", proof, strings.Join(want, "\n"))
				}
				for _, m := range middlewares {
					t.Run(m.name, func(t *testing.T) {
						got := observe(t, b, protocol == 1, dir, file, m)
						if diff := cmp.Diff(want, got); diff != "" {
							t.Errorf("the handler and its client note something else inside of the middleware (-without +inside):\n%s", diff)
						}
					})
				}
			})
		}
	}
}

// Every exported function of this module that makes a handler, or a middleware, has a
// row.
func TestEveryMiddlewareHasARow(t *testing.T) {
	rows := make(map[string]bool)
	for _, m := range middlewares {
		name, _, _ := strings.Cut(m.name, " ")
		rows[name] = true
	}
	const root = "../.."
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path == root {
				return nil
			}
			_, noModule := os.Stat(filepath.Join(path, "go.mod"))
			if noModule == nil || entry.Name() == "internal" || strings.HasPrefix(entry.Name(), ".") {
				return fs.SkipDir // another module, or not public
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		for _, name := range makers(path) {
			if !rows[name] && !slices.Contains(likeByPlan, name) {
				t.Errorf("%s is a middleware: add it to middlewares_test.go", name)
			}
			delete(rows, name)
		}
		return nil
	})
	testcheck.NoError(t, err)
	delete(rows, "middleware.TrackResponse") // for the middlewares of services
	for name := range rows {
		t.Errorf("the row %s is for no function", name)
	}
}

var makesHandler = regexp.MustCompile(`^(http\.Handler|Middleware|middleware\.Middleware|func\((\w+ )?http\.Handler\) http\.Handler)$`)

// makers returns the exported functions of a file that return a handler or a
// middleware.
func makers(path string) []string {
	source := testcheck.Must(os.ReadFile(path))
	files := token.NewFileSet()
	file := testcheck.Must(parser.ParseFile(files, path, source, parser.SkipObjectResolution))
	text := func(n ast.Node) string {
		return string(source[files.Position(n.Pos()).Offset:files.Position(n.End()).Offset])
	}
	var names []string
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || !f.Name.IsExported() || f.Type.Results == nil || !makesHandler.MatchString(text(f.Type.Results.List[0].Type)) {
			continue
		}
		name := f.Name.Name
		if f.Recv != nil {
			receiver, _, _ := strings.Cut(strings.TrimPrefix(text(f.Recv.List[0].Type), "*"), "[")
			if !ast.IsExported(receiver) {
				continue
			}
			name = receiver + "." + name
		}
		names = append(names, file.Name.Name+"."+name)
	}
	return names
}
