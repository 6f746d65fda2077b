// Package build says what the running program was built from.
//
//	info := build.Read()
//	fmt.Println("petstore " + info.String())
package build

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// The linker sets these for a release:
//
//	go build -ldflags "-X github.com/animalstore/gatehouse/reference/internal/build.version=v1.2.0 …"
//
// In a clone, the go command finds the commit by itself, and makes a pseudo-version of it,
// because this module has no tags. An image is built without .git, where it finds neither.
var (
	version  string
	revision string
	date     string // of the commit, as in RFC 3339
)

// Info says what a program was built from.
type Info struct {
	Version  string     `json:"version"`            // such as v1.2.0, a pseudo-version of a commit, or devel
	Revision string     `json:"revision,omitempty"` // the commit; empty if it is not known
	Time     *time.Time `json:"time,omitempty"`     // of the commit; nil if it is not known
	Modified bool       `json:"modified"`           // the working tree had changes that were not committed
	Go       string     `json:"go"`                 // the version of Go
	OS       string     `json:"os"`
	Arch     string     `json:"arch"`
}

// Read returns what this program was built from: what the linker was told, and otherwise
// what the go command found in the repository.
func Read() Info {
	built, _ := debug.ReadBuildInfo()
	return read(built, version, revision, date)
}

// read is Read with what the go command and the linker have stored. built may be nil.
func read(built *debug.BuildInfo, version, revision, date string) Info {
	i := Info{Version: version, Revision: revision, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if built != nil {
		if built.Main.Version != "(devel)" {
			i.Version = cmp.Or(i.Version, built.Main.Version)
		}
		found := map[string]string{}
		for _, s := range built.Settings {
			found[s.Key] = s.Value
		}
		i.Revision = cmp.Or(i.Revision, found["vcs.revision"])
		i.Modified = found["vcs.modified"] == "true"
		date = cmp.Or(date, found["vcs.time"])
	}
	i.Version = cmp.Or(i.Version, "devel")
	if t, err := time.Parse(time.RFC3339, date); err == nil {
		t = t.UTC()
		i.Time = &t
	}
	return i
}

// String returns one line, such as
// "v1.2.0 (revision 1f4e2d7b9a03 of 2026-11-22T06:50:31Z, go1.26.8, linux/amd64)".
func (i Info) String() string {
	var details []string
	if i.Revision != "" {
		from := "revision " + i.Revision[:min(12, len(i.Revision))]
		if i.Time != nil {
			from += " of " + i.Time.Format(time.RFC3339)
		}
		details = append(details, from)
	}
	if i.Modified {
		details = append(details, "modified")
	}
	details = append(details, i.Go, i.OS+"/"+i.Arch)
	return i.Version + " (" + strings.Join(details, ", ") + ")"
}
