package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// A place is where a value was given: in a file, with line and column from 1, or
// somewhere that text names.
type place struct {
	text         string
	line, column int // 0: not in a file
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

func (m mistake) Error() string {
	if m.setting == "" {
		return m.at.String() + ": " + m.what
	}
	return m.at.String() + ": " + m.setting + ": " + m.what
}

// A report collects mistakes, so that they can be mended in one go.
type report struct{ mistakes []mistake }

func (r *report) add(at place, setting, format string, args ...any) {
	r.mistakes = append(r.mistakes, mistake{at, setting, fmt.Sprintf(format, args...)})
}

// err returns the mistakes as one error, a line each, those of a file in its
// order; nil if there are none.
func (r *report) err() error {
	slices.SortStableFunc(r.mistakes, func(a, b mistake) int {
		if a.at.line == 0 || b.at.line == 0 {
			// What is in the file comes first.
			return cmp.Compare(min(b.at.line, 1), min(a.at.line, 1))
		}
		return cmp.Or(cmp.Compare(a.at.line, b.at.line), cmp.Compare(a.at.column, b.at.column))
	})
	var errs []error
	for i, m := range r.mistakes {
		if i == maxMistakes {
			errs = append(errs, fmt.Errorf("and %d mistakes more", len(r.mistakes)-i))
			break
		}
		errs = append(errs, m)
	}
	return errors.Join(errs...)
}

// maxMistakes is how many mistakes are reported at once.
const maxMistakes = 20
