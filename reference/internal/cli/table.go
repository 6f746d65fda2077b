package cli

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// table prints columns of text.
type table struct {
	w   *tabwriter.Writer
	out *bufio.Writer // tabwriter writes each cell by itself
}

func newTable(w io.Writer, columns ...string) table {
	out := bufio.NewWriter(w)
	t := table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0), out}
	t.row(columns...)
	return t
}

func (t table) row(cells ...string) {
	for i, cell := range cells {
		cells[i] = showable(cell)
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

func (t table) flush() error { return cmp.Or(t.w.Flush(), t.out.Flush()) }

// showTime formats a time for people, to the second.
func showTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }
