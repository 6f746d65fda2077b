package cli

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"
)

// table prints columns of text.
type table struct {
	w   *tabwriter.Writer
	out *bufio.Writer // tabwriter writes each cell by itself
}

func newTable(w io.Writer, columns ...any) table {
	out := bufio.NewWriter(w)
	t := table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0), out}
	t.row(columns...)
	return t
}

func (t table) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = showable(fmt.Sprint(cell))
	}
	fmt.Fprintln(t.w, strings.Join(texts, "\t"))
}

func (t table) flush() error { return cmp.Or(t.w.Flush(), t.out.Flush()) }

// show prints a list as JSON, or as a table with these columns. add adds the rows of one item to
// the table. If the list is empty, show says so instead of a table.
func show[T any](o output, asJSON bool, list []T, empty string, add func(table, T), columns ...any) error {
	switch {
	case asJSON:
		return printJSON(o.out, list)
	case len(list) == 0:
		o.say("%s", empty)
		return nil
	}
	t := newTable(o.out, columns...)
	for _, item := range list {
		add(t, item)
	}
	return t.flush()
}

// showTime formats a time for people, to the second.
func showTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// printJSON prints a value for programs, indented so that people can read it too.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// showable quotes text with characters that are invisible or change how other text is
// shown, such as zero-width spaces, bidirectional controls and spaces at an end. Different
// texts are shown differently.
func showable(text string) string {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, hidden) || strings.TrimSpace(text) != text || strings.HasPrefix(text, `"`) {
		return strconv.QuoteToASCII(text)
	}
	return text
}

// escape replaces hidden characters by U+FFFD, so that text from elsewhere cannot control a
// terminal.
func escape(text string) string {
	return strings.Map(func(r rune) rune {
		if hidden(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}

// hidden reports whether a character cannot be seen. [unicode.IsPrint] counts some of them
// as letters, symbols or marks, such as the Hangul filler and variation selectors.
func hidden(r rune) bool {
	const brailleBlank = '\u2800'
	return !unicode.IsPrint(r) || r == brailleBlank || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
