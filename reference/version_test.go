package main_test

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The command, the log and the admin listener tell the same version.
func TestVersion(t *testing.T) {
	t.Parallel()
	printed, err := exec.Command("petstore", "version", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal(printed, &want); err != nil {
		t.Fatalf("petstore version --json printed %s: %v", printed, err)
	}
	if want["version"] == "" || want["go"] != runtime.Version() || want["os"] != runtime.GOOS || want["arch"] != runtime.GOARCH {
		t.Errorf("petstore version --json printed %s", printed)
	}

	p, err := launch(t.TempDir(), environment())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	line := p.logged("serving")[0]
	if line["version"] != want["version"] || line["revision"] != want["revision"] || line["go"] != want["go"] {
		t.Errorf("the log says %v, want the version, revision and Go of %v", line, want)
	}
	resp, err := http.Get(p.admin + "/state")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var state struct{ Build map[string]any }
	if err := json.NewDecoder(resp.Body).Decode(&state); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, state.Build); diff != "" {
		t.Errorf("GET /state does not have what petstore version prints (-want +got):\n%s", diff)
	}
}
