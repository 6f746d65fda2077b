package apierror

import (
	"strings"
	"testing"
)

func TestPrefersProblem(t *testing.T) {
	commas := strings.Repeat(",", maxAccept)
	for _, tt := range []struct {
		name  string
		lines []string
		want  bool
	}{
		{"absent", nil, false},
		{"envelope", []string{"application/json"}, false},
		{"problem", []string{"application/problem+json"}, true},
		{"neither", []string{"text/html"}, false},
		{"anything", []string{"*/*"}, false},
		{"any application type", []string{"application/*"}, false},
		{"tie by name", []string{"application/problem+json, application/json"}, false},
		{"tie with a wildcard", []string{"application/problem+json, */*"}, false},

		{"problem weighs more", []string{"application/json;q=0.9, application/problem+json"}, true},
		{"envelope weighs more", []string{"application/json, application/problem+json;q=0.9"}, false},
		{"problem over a lighter wildcard", []string{"application/problem+json, */*;q=0.8"}, true},
		{"wildcard over a lighter problem", []string{"*/*, application/problem+json;q=0.8"}, false},
		{"browser", []string{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}, false},

		{"specific beats general whatever the order", []string{"application/json;q=0.1, application/*;q=0.2, */*;q=1, application/problem+json;q=0.05"}, false},
		{"envelope excluded, all else welcome", []string{"application/json;q=0, */*"}, true},
		{"problem excluded", []string{"application/problem+json;q=0, */*"}, false},
		{"same range twice, the heavier counts", []string{"application/json;q=0.2, application/json;q=0.7, application/problem+json;q=0.5"}, false},

		{"several lines are one list", []string{"application/json;q=0.5", "application/problem+json"}, true},
		{"later line excludes", []string{"*/*", "application/json;q=0"}, true},
		{"case", []string{"Application/JSON;Q=0.5, APPLICATION/Problem+Json"}, true},
		{"white space around", []string{"\tapplication/json ; q=0.5 ,  application/problem+json\t; q=0.6 "}, true},
		{"weight before a parameter", []string{"application/problem+json;q=0;charset=utf-8, */*;q=0.1"}, false},
		{"empty parameters (RFC 9110 section 5.6.6)", []string{"application/problem+json;; q=0.6; ;, application/json;q=0.5"}, true},
		{"a parameter before the type", []string{" ; ;application/problem+json"}, false},
		{"quoted weight", []string{`application/json;q="0.5", application/problem+json`}, true},

		{"charset is no other type", []string{`application/problem+json; charset="UTF-8"`}, true},
		{"another charset", []string{"application/problem+json; charset=utf-16"}, false},
		{"parameter of another type", []string{"application/problem+json;profile=x"}, false},
		{"comma and semicolon in quotes", []string{`text/x;a=",application/json;q=0.1;", application/problem+json;q=0.5`}, true},
		{"escaped quote in quotes", []string{`text/x;a="\",application/json,\\", application/problem+json`}, true},

		{"malformed member is skipped", []string{"json, application/problem+json"}, true},
		{"lone star of old clients", []string{"text/html, *; q=.2, */*; q=.2"}, false},
		{"weight over one", []string{"application/problem+json;q=1.001"}, false},
		{"weight that is no number", []string{"application/problem+json;q=NaN"}, false},
		{"negative weight", []string{"application/problem+json;q=-1"}, false},
		{"two weights", []string{"application/problem+json;q=1;q=0.5"}, false},
		{"two types in one member", []string{"application/problem+json application/json"}, false},
		{"unterminated quote swallows the rest", []string{`text/x;a=", application/problem+json`}, false},
		{"quote that ends in a backslash", []string{`application/problem+json;a="\`}, false},
		{"letter that folds to an ASCII one", []string{"application/problem+j\u017fon"}, false},

		{"at the bound", []string{commas[:maxAccept-1-len("application/problem+json")] + "application/problem+json"}, true},
		{"beyond the bound", []string{commas[:maxAccept-len("application/problem+json")] + "application/problem+json"}, false},
		{"beyond the bound in many lines", append([]string{"application/problem+json"}, make([]string, maxAccept)...), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := prefersProblem(tt.lines); got != tt.want {
				t.Errorf("prefersProblem(%.120q) = %t, want %t", tt.lines, got, tt.want)
			}
		})
	}
}

func FuzzAccept(f *testing.F) {
	for _, seed := range []string{
		"", "*/*", "application/json;q=0, */*", "application/problem+json", `a/b;c="d,\"e";q=0.5,`,
		"application/*;q=0.1;;,\t*/*;q=1.000", `application/problem+json;charset="utf\-8"`, `x/y;z="`, "*/*;q=1.001",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got := prefersProblem([]string{line})

		if prefersProblem([]string{line}) != got {
			t.Error("two readings of one line differ")
		}
		if prefersProblem([]string{line, "application/json"}) {
			t.Error("a client that also accepts the envelope at full weight does not get it")
		}
		if len(line) < maxAccept/2 {
			if prefersProblem([]string{"", ", ,", line}) != got {
				t.Error("empty members change the outcome")
			}
			if prefersProblem([]string{line, line}) != got {
				t.Error("the same line twice changes the outcome")
			}
			if prefersProblem([]string{swapCase(line)}) != got {
				t.Error("case changes the outcome")
			}
		}
	})
}

// swapCase turns each ASCII letter into its other case.
func swapCase(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			b[i] = c ^ 0x20
		}
	}
	return string(b)
}

func TestKeptFieldsAreNotStale(t *testing.T) {
	for _, name := range kept {
		if isStale(name) {
			t.Errorf("%s is skipped by onlyKept, but must be removed", name)
		}
	}
}
