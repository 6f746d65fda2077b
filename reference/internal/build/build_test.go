package build

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const commit = "1f4e2d7b9a03c55e0d6f1b2a3c4d5e6f708192a3"

func TestRead(t *testing.T) {
	at := time.Date(2026, time.November, 22, 6, 50, 31, 0, time.UTC)
	inClone := &debug.BuildInfo{
		Main: debug.Module{Version: "v0.0.0-20261122065031-1f4e2d7b9a03+dirty"},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: commit}, {Key: "vcs.time", Value: "2026-11-22T06:50:31Z"}, {Key: "vcs.modified", Value: "true"},
		},
	}
	details := runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + ")"
	for _, tt := range []struct {
		name                    string
		built                   *debug.BuildInfo
		version, revision, date string
		want                    Info
		text                    string
	}{
		{"nothing is known", nil, "", "", "", Info{Version: "devel"}, "devel (" + details},
		{"go run", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "", "", "", Info{Version: "devel"}, "devel (" + details},
		{
			"go build in a clone", inClone, "", "", "",
			Info{Version: "v0.0.0-20261122065031-1f4e2d7b9a03+dirty", Revision: commit, Time: &at, Modified: true},
			"v0.0.0-20261122065031-1f4e2d7b9a03+dirty (revision 1f4e2d7b9a03 of 2026-11-22T06:50:31Z, modified, " + details,
		},
		{
			"a release", &debug.BuildInfo{}, "v1.2.0", commit, "2026-11-22T07:50:31+01:00",
			Info{Version: "v1.2.0", Revision: commit, Time: &at},
			"v1.2.0 (revision 1f4e2d7b9a03 of 2026-11-22T06:50:31Z, " + details,
		},
		{
			"a release from a clone", inClone, "v1.2.0", "", "",
			Info{Version: "v1.2.0", Revision: commit, Time: &at, Modified: true},
			"v1.2.0 (revision 1f4e2d7b9a03 of 2026-11-22T06:50:31Z, modified, " + details,
		},
		{"an image without the arguments", nil, "v1.2.0", "abc", "", Info{Version: "v1.2.0", Revision: "abc"}, "v1.2.0 (revision abc, " + details},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.Go, tt.want.OS, tt.want.Arch = runtime.Version(), runtime.GOOS, runtime.GOARCH
			got := read(tt.built, tt.version, tt.revision, tt.date)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("what it was built from (-want +got):\n%s", diff)
			}
			if got.String() != tt.text {
				t.Errorf("as text: %q, want %q", got, tt.text)
			}
		})
	}
}
