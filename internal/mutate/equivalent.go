package main

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
)

// equivalents are changes that a reader found to make no difference, as
// mutation.key writes them, and whether has was asked for them.
type equivalents map[string]bool

// readEquivalents reads a list of them. A file that does not exist is an empty
// list.
func readEquivalents(file string) (equivalents, error) {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	known := equivalents{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			known[line] = false
		}
	}
	return known, nil
}

func (e equivalents) has(m mutation) bool {
	_, found := e[m.key()]
	if found {
		e[m.key()] = true
	}
	return found
}

// unused returns the changes that has was not asked for.
func (e equivalents) unused() []string {
	return slices.Sorted(func(yield func(string) bool) {
		for line, used := range maps.All(e) {
			if !used && !yield(line) {
				return
			}
		}
	})
}
