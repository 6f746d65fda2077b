package wire

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// elsewhere are the codes of package apierror that no answer here has, and what sends them.
var elsewhere = map[string]string{
	"invalid_body":           "`middleware/jsonbody` and `middleware/gateway`",
	"unsupported_media_type": "`middleware/jsonbody`",
	"invalid_parameter":      "the service itself",
	"precondition_failed":    "the service itself",
}

var (
	codeInBody   = regexp.MustCompile(`"code":"([a-z_]+)"`)
	codeDeclared = regexp.MustCompile(`Code = "([a-z_]+)"`)
)

// index returns a table of all answers by status.
func index(received map[string]string) string {
	var rows []string
	for _, p := range parts {
		for _, a := range p.answers {
			_, status, _ := strings.Cut(received[a.name], " ")
			code := ""
			if found := codeInBody.FindStringSubmatch(received[a.name]); found != nil {
				code = "`" + found[1] + "`"
			}
			rows = append(rows, fmt.Sprintf("| %.3s | %s | [%s](#%s) |\n", status, code, a.title, anchor(a.title)))
		}
	}
	slices.SortStableFunc(rows, func(a, b string) int { return strings.Compare(a[:5], b[:5]) })
	table := "| status | code | answer |\n|---|---|---|\n" + strings.Join(rows, "")
	for _, code := range slices.Sorted(maps.Keys(elsewhere)) {
		table += fmt.Sprintf("| | `%s` | not shown: sent by %s |\n", code, elsewhere[code])
	}
	return table
}

// anchor returns the name that a heading has in links.
func anchor(title string) string {
	title = strings.ReplaceAll(strings.ToLower(title), " ", "-")
	return strings.Map(func(r rune) rune {
		if r == '-' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, title)
}

// checkCodes checks that each code of package apierror is in an answer, or is known to be sent elsewhere.
func checkCodes(t *testing.T, received map[string]string) {
	source, err := os.ReadFile("../../apierror/code.go")
	if err != nil {
		t.Fatal(err)
	}
	shown := make(map[string]bool)
	for _, response := range received {
		if found := codeInBody.FindStringSubmatch(response); found != nil {
			shown[found[1]] = true
		}
	}
	declared := codeDeclared.FindAllStringSubmatch(string(source), -1)
	if len(declared) == 0 {
		t.Fatal("no code was found in the source of package apierror")
	}
	for _, code := range declared {
		if _, other := elsewhere[code[1]]; shown[code[1]] == other {
			t.Errorf("the code %s must either be in an answer (it is: %t) or in elsewhere", code[1], shown[code[1]])
		}
	}
}
