package migrate

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/internal/testcheck"
)

// The diffs on the page, in the order of the migrations, make the programs after of the
// programs before.
func TestPage(t *testing.T) {
	page := read(t, "../../docs/MIGRATING.md")
	diffs := regexp.MustCompile("(?s)```diff\n(.*?)```").FindAllStringSubmatch(page, -1)
	if len(diffs) != len(migrations) {
		t.Fatalf("the page has %d diffs, want %d", len(diffs), len(migrations))
	}
	for i, m := range migrations {
		got := read(t, m.from+"/before/api.go")
		for hunk := range strings.SplitSeq(diffs[i][1], "@@\n") {
			from, to := sides(hunk)
			if n := strings.Count(got, from); n != 1 {
				t.Errorf("%s: these lines of the page are %d times in the program before, want once:\n%s", m.from, n, from)
			}
			got = strings.Replace(got, from, to, 1)
		}
		if want := read(t, m.from+"/after/api.go"); got != want {
			t.Errorf("%s: the diff on the page makes\n%s\nwant the program after:\n%s", m.from, got, want)
		}
	}
}

// sides returns the lines of a hunk before and after it is applied.
func sides(hunk string) (before, after string) {
	for line := range strings.Lines(hunk) {
		switch text := line[1:]; line[0] {
		case '-':
			before += text
		case '+':
			after += text
		default:
			before += text
			after += text
		}
	}
	return before, after
}

func read(t *testing.T, file string) string {
	t.Helper()
	b := testcheck.Must(os.ReadFile(file))
	return string(b)
}
