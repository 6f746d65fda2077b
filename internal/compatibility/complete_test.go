package compatibility

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

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
		for _, name := range makers(t, path) {
			if !rows[name] && name != "gateway.New" { // has no handler inside it
				t.Errorf("%s is a middleware: add it to middlewares_test.go", name)
			}
			delete(rows, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	delete(rows, "middleware.TrackResponse") // for the middlewares of services
	for name := range rows {
		t.Errorf("the row %s is for no function", name)
	}
}

var makesHandler = regexp.MustCompile(`^(http\.Handler|Middleware|middleware\.Middleware|func\((\w+ )?http\.Handler\) http\.Handler)$`)

// makers returns the exported functions of a file that return a handler or a
// middleware.
func makers(t *testing.T, path string) []string {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
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
