package config

import (
	"regexp"
	"slices"
	"strings"
)

// ofKubernetes matches the variables that Kubernetes sets in every container for a
// service named petstore or petstore-….
var ofKubernetes = regexp.MustCompile(`^PETSTORE_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// CheckEnvironment returns an error that names each variable in environ, which is
// in the form of [os.Environ], that begins with PETSTORE_ and is not a setting. The
// error suggests a setting that is meant, or says that the setting belongs in the file. A
// misspelt variable would otherwise be ignored. Variables that Kubernetes sets for
// services are not errors.
func CheckEnvironment(environ []string) error {
	known := []string{variable("config")}
	for _, s := range settings {
		if s.hasVariable() {
			known = append(known, variable(s.name))
		}
		if s.fileVar {
			known = append(known, fileVariable(s.name))
		}
	}
	candidates := slices.Clone(known)
	for _, setting := range fileOnlySettings() {
		candidates = append(candidates, variable(setting))
	}
	slices.Sort(candidates)
	var r report
	for _, entry := range slices.Sorted(slices.Values(environ)) {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, variable("")) || slices.Contains(known, name) || ofKubernetes.MatchString(name) {
			continue
		}
		if setting := fileOnlySetting(name); setting != "" {
			r.add(place{text: name}, "", "%s can only be set in the settings file, which --config or %s names", setting, variable("config"))
			continue
		}
		r.add(place{text: name}, "", "unknown variable;%s", meantVariable(name, candidates))
	}
	return r.err()
}

// meantVariable returns a question that suggests one of the variables for the unknown one
// name: one with at most two letters that differ, one that name adds words to, one that
// name lacks words of, or the nearest.
func meantVariable(name string, variables []string) string {
	meant := nearest(name, variables)
	if editDistance(name, meant) > 2 {
		word := strings.TrimPrefix(name, variable(""))
		near := slices.Clone(variables)
		slices.SortStableFunc(near, func(a, b string) int { return len(b) - len(a) })
		longer := func(v string) bool { return strings.HasPrefix(name, v+"_") }
		shorter := func(v string) bool { return word != "" && strings.HasSuffix(v, "_"+word) }
		if i := slices.IndexFunc(near, longer); i >= 0 {
			meant = near[i]
		} else if i := slices.IndexFunc(near, shorter); i >= 0 {
			meant = near[i]
		} else if editDistance(name, meant) > len(word)/2 {
			return " reference/docs/CONFIGURATION.md lists all"
		}
	}
	if setting := fileOnlySetting(meant); setting != "" {
		meant = setting + " in the settings file"
	}
	return " did you mean " + meant + "?"
}

// fileOnlySettings returns the settings and groups that only the file can set.
func fileOnlySettings() []string {
	var names []string
	for _, s := range settings {
		if !s.hasVariable() && !slices.Contains(names, s.group()) {
			names = append(names, s.group())
		}
	}
	return names
}

// fileOnlySetting returns the setting that a variable names, if only the file can set
// it: plans for PETSTORE_PLANS and PETSTORE_PLANS_FREE.
func fileOnlySetting(name string) string {
	for _, setting := range fileOnlySettings() {
		if v := variable(setting); name == v || strings.HasPrefix(name, v+"_") {
			return setting
		}
	}
	return ""
}

// nearest returns the element of names with the smallest edit distance to name; on a
// tie the first.
func nearest(name string, names []string) string {
	return slices.MinFunc(names, func(a, b string) int { return editDistance(name, a) - editDistance(name, b) })
}

// didYouMean returns a question that suggests the nearest of names, or "" if none is
// near.
func didYouMean(name string, names []string) string {
	meant := nearest(name, names)
	if editDistance(name, meant) > len(name)/2 {
		return ""
	}
	return " did you mean " + meant + "?"
}

// editDistance returns how many bytes must be inserted, removed or replaced to turn
// a into b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1) // of the distances to the prefixes of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
