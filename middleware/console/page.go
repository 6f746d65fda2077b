package console

import (
	_ "embed"
	"fmt"
	"html/template"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

//go:embed page.html
var html string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"visible": visible, "whole": whole, "chart": chart,
	"most":  slices.Max[[]int64],
	"stamp": func(t time.Time) string { return t.UTC().Format(time.DateTime) },
	"wait":  func(now, end time.Time) time.Duration { return max(end.Sub(now).Round(time.Second), 0) },
	"parts": func(subject string) []string { return strings.SplitAfterN(subject, ":", 2) },
	"table": func(head, none string, list []subject) []any { return []any{head, none, list} },
}).Parse(html))

// chart returns the points of a line in a box of 600 by 100, for values that are 0 or more.
func chart(values []int64) string {
	most := max(slices.Max(values), 1)
	var b strings.Builder
	for i, v := range values {
		fmt.Fprintf(&b, "%d,%d ", i*600/(len(values)-1), 100-v*92/most)
	}
	return b.String()
}

// visible returns a text with characters that are not seen written as \u{202E}: those that are
// not printed, that are shown as nothing, or that are spaces which a name should not have.
func visible(text string) string {
	var b strings.Builder
	for i, r := range text {
		doubled := r == ' ' && (i == 0 || text[i-1] == ' ' || i == len(text)-1)
		if doubled || !strconv.IsPrint(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) || r == '\u2800' {
			fmt.Fprintf(&b, `\u{%X}`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// whole returns a number with separators, "1,234,567", and any other value as it is: a version can
// be a text of digits alone.
func whole(n any) string {
	text := visible(fmt.Sprint(n))
	for i := len(text) - 3; i > 0 && reflect.ValueOf(n).Kind() != reflect.String && strings.Trim(text, "0123456789,") == ""; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
