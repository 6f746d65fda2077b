//go:build !long

package pages_test

import "testing"

func TestInBrowser(t *testing.T) {
	t.Skip("the pages run in Chromium, which needs -tags long")
}
