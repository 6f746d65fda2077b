package engines

import (
	"os"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/internal/testcheck"
)

// A table is the cells of a table in Markdown by row and column, both named by the text
// in their first cells. A row whose first cell has several names has them all, separated
// by "; ".
type table map[string]map[string]string

// readTable returns the table of a page below a heading.
func readTable(t *testing.T, file, heading string) table {
	t.Helper()
	page := testcheck.Must(os.ReadFile("../../../docs/" + file))
	_, section, ok := strings.Cut(string(page), "# "+heading+"\n")
	if !ok {
		t.Fatalf("%s has no heading %q", file, heading)
	}
	section, _, _ = strings.Cut(section, "\n#")
	var names []string
	found := table{}
	for line := range strings.Lines(section) {
		cells := cells(line)
		switch {
		case cells == nil || strings.HasPrefix(line, "|---"):
		case names == nil:
			names = cells
		default:
			row := make(map[string]string)
			for i, name := range names {
				row[name] = cells[i]
			}
			for name := range strings.SplitSeq(row[names[0]], "; ") {
				found[name] = row
			}
		}
	}
	return found
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
