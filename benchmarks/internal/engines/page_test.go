package engines

import (
	"os"
	"strings"
	"testing"
)

// A table is the cells of a table in Markdown by row and column, both named by the text
// in their first cells.
type table map[string]map[string]string

// tables returns the tables of a page below a heading.
func tables(t *testing.T, file, heading string) (all []table) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/" + file)
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "# "+heading+"\n")
	if !ok {
		t.Fatalf("%s has no heading %q", file, heading)
	}
	section, _, _ = strings.Cut(section, "\n#")
	var names []string
	for line := range strings.Lines(section) {
		cells := cells(line)
		switch {
		case cells == nil:
			names = nil
		case names == nil:
			names, all = cells, append(all, table{})
		case !strings.HasPrefix(line, "|---"):
			row := make(map[string]string)
			for i, name := range names {
				row[name] = cells[i]
			}
			all[len(all)-1][row[names[0]]] = row
		}
	}
	return all
}

// cells returns the cells of a line of a table, without the marks of code and bold.
func cells(line string) (all []string) {
	line, isRow := strings.CutPrefix(strings.TrimSpace(line), "|")
	if !isRow {
		return nil
	}
	line = strings.NewReplacer("`", "", "**", "").Replace(strings.TrimSuffix(line, "|"))
	for cell := range strings.SplitSeq(line, "|") {
		all = append(all, strings.TrimSpace(cell))
	}
	return all
}
