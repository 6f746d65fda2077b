package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// A place is where a value was set: a line and a column of the file, both from 1, or
// a variable or flag.
type place struct {
	text         string // name of the file, the variable or the flag
	line, column int    // 0: not in a file
}

func (p place) String() string {
	if p.line == 0 {
		return p.text
	}
	return fmt.Sprintf("%s:%d:%d", p.text, p.line, p.column)
}

// A mistake is one thing that is wrong.
type mistake struct {
	at      place
	setting string // empty: the file as such
	what    string
}

func (m mistake) Error() string { return label(m.at.String(), m.setting) + ": " + m.what }

// label returns the beginning of a message about a setting: where its value was set,
// and its name where that does not say it.
func label(where, setting string) string {
	switch {
	case where == notSet:
		return setting
	case setting == "" || where == variable(setting) || where == flagName(setting):
		return where
	default:
		return where + ": " + setting
	}
}

// A report collects mistakes, so that they can be fixed at once.
type report struct{ mistakes []mistake }

func (r *report) add(at place, setting, format string, args ...any) {
	r.mistakes = append(r.mistakes, mistake{at, setting, fmt.Sprintf(format, args...)})
}

// err returns the mistakes as one error with a line for each, or nil if there are
// none. Mistakes in the file come first, in the order of the file.
func (r *report) err() error {
	slices.SortStableFunc(r.mistakes, func(a, b mistake) int {
		if a.at.line == 0 || b.at.line == 0 {
			return cmp.Compare(min(b.at.line, 1), min(a.at.line, 1))
		}
		return cmp.Or(cmp.Compare(a.at.line, b.at.line), cmp.Compare(a.at.column, b.at.column))
	})
	var errs []error
	for i, m := range r.mistakes {
		if i == maxMistakes {
			errs = append(errs, fmt.Errorf("and %d more mistakes", len(r.mistakes)-i))
			break
		}
		errs = append(errs, m)
	}
	return errors.Join(errs...)
}

// maxMistakes is how many mistakes are reported at once.
const maxMistakes = 20
