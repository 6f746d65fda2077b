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
	codeInBody = regexp.MustCompile(`"code":"([a-z_]+)"`)
	codeListed = regexp.MustCompile(`(?m)^//\t([a-z_]+) +[45]\d\d `)
)

// others says which codes come from elsewhere.
func others() string {
	var b strings.Builder
	b.WriteString("Codes that are not on this page:")
	for _, code := range slices.Sorted(maps.Keys(elsewhere)) {
		fmt.Fprintf(&b, " `%s` is sent by %s.", code, elsewhere[code])
	}
	return b.String() + "\n"
}

// checkCodes checks that each code of package apierror is in an answer, or is known to be sent elsewhere.
func checkCodes(t *testing.T, received map[string]string) {
	source, err := os.ReadFile("../../apierror/error.go")
	if err != nil {
		t.Fatal(err)
	}
	shown := make(map[string]bool)
	for _, response := range received {
		if found := codeInBody.FindStringSubmatch(response); found != nil {
			shown[found[1]] = true
		}
	}
	listed := codeListed.FindAllStringSubmatch(string(source), -1)
	if len(listed) == 0 {
		t.Fatal("no code was found in the source of package apierror")
	}
	for _, code := range listed {
		if _, other := elsewhere[code[1]]; shown[code[1]] == other {
			t.Errorf("the code %s must either be in an answer (it is: %t) or in elsewhere", code[1], shown[code[1]])
		}
	}
}
