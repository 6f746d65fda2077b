//go:build !long

package deploy_test

import "testing"

func TestManifests(t *testing.T) {
	t.Skip("what Kubernetes, Compose and Docker read is checked with their own packages, which needs -tags long")
}
