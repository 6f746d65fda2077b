package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// table prints columns of text.
type table struct{ w *tabwriter.Writer }

func newTable(w io.Writer, columns ...string) table {
	t := table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	t.row(columns...)
	return t
}

func (t table) row(cells ...string) {
	for i, cell := range cells {
		cells[i] = showable(cell)
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

func (t table) flush() error { return t.w.Flush() }

// showTime formats a time for people, to the second.
func showTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }
