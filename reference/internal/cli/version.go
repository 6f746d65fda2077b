package cli

import (
	"fmt"
	"runtime/debug"
	"strings"
)

type versionCmd struct{}

func (versionCmd) Run(o output) error {
	fmt.Fprintln(o.out, "petstore "+version())
	return nil
}

// version describes what this binary was built from:
// "v1.2.0 (revision 1f4e2d7b9a03, go1.26.0)".
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown version)"
	}
	details := []string{info.GoVersion}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			details = append([]string{"revision " + s.Value[:min(12, len(s.Value))]}, details...)
		case s.Key == "vcs.modified" && s.Value == "true":
			details = append(details, "modified")
		}
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "development version"
	}
	return fmt.Sprintf("%s (%s)", v, strings.Join(details, ", "))
}
