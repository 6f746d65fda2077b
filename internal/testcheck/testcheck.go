// Package testcheck has what the helpers of many packages of tests begin with. A package names
// it as its tests call it:
//
//	var must = testcheck.NoError
package testcheck

import "testing"

// NoError ends the test if err is not nil.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
