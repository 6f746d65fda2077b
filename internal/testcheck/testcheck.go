// Package testcheck has what the helpers of many packages of tests begin with. A package names
// it as its tests call it:
//
//	var must = testcheck.NoError
package testcheck

import (
	"strings"
	"sync"
	"testing"
)

// NoError ends the test if err is not nil.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Must returns v, and panics if err is not nil. It is for what a test sets up, and for
// variables of a package.
func Must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}

// A Log is a log that can be read while it is written. The zero Log is empty.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write adds to the log. It is part of [io.Writer].
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns the log so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
