package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/admin"
	"github.com/animalstore/gatehouse/reference/internal/observe"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
)

// Names that look the same are shown differently.
func TestShowable(t *testing.T) {
	for text, want := range map[string]string{
		"":              "",
		"ada":           "ada",
		"Zoë von Ärger": "Zoë von Ärger",
		"李小龍":           "李小龍",
		`say "ada"`:     `say "ada"`,

		"ada\u200b":        `"ada\u200b"`, // zero-width space
		"ada\u00a0":        `"ada\u00a0"`, // no-break space
		"\u202eada":        `"\u202eada"`, // right-to-left override
		"ada\u061c":        `"ada\u061c"`, // Arabic letter mark
		"ada\x1b[2J":       `"ada\x1b[2J"`,
		"ada\xff":          `"ada\xff"`,
		"ada\ttab":         `"ada\ttab"`,
		"ada\u3164":        `"ada\u3164"`, // Hangul filler, a letter
		"ada\u115f":        `"ada\u115f"`,
		"ada\uffa0":        `"ada\uffa0"`,
		"ada\u2800":        `"ada\u2800"`, // blank Braille pattern, a symbol
		"ada\u034f":        `"ada\u034f"`, // combining grapheme joiner, a mark
		"ada\u17b4":        `"ada\u17b4"`,
		"ada\ufe0f":        `"ada\ufe0f"`, // variation selector 16
		"ada\U000e0100":    `"ada\U000e0100"`,
		"ada\U000e0041":    `"ada\U000e0041"`, // tag
		"ada ":             `"ada "`,
		" ada":             `" ada"`,
		`"ada "`:           `"\"ada \""`, // not what stands for "ada "
		`\u200b`:           `\u200b`,
		"\u200b" + `\n"a"`: `"\u200b\\n\"a\""`,
	} {
		if got := showable(text); got != want {
			t.Errorf("showable(%q) = %s, want %s", text, got, want)
		}
	}
}

// Another program can listen where the server is expected. What it answers must not
// control the terminal of the operator.
func TestErrorsDoNotControlTheTerminal(t *testing.T) {
	err := errors.New("127.0.0.1:9090 answered 500 \x1b]0;pwned\a: \u202etxt\r\x9b2J\nnext line")
	var b bytes.Buffer
	output{err: &b}.printError(err)
	want := "petstore: 127.0.0.1:9090 answered 500 \\u001b]0;pwned\\u0007: \\u202etxt\\u000d\ufffd2J\npetstore: next line\n"
	if got := b.String(); got != want {
		t.Errorf("the message is\n%q, want\n%q", got, want)
	}
	shown := string(frame(testTop(0, 0), err, time.Now(), 200, 24))
	for _, part := range []string{"\x1b]", "\a", "\u202e", "\r", "\x9b", "\nnext"} {
		if strings.Contains(shown, part) {
			t.Errorf("petstore top shows %q of an error", part)
		}
	}
}

func TestUsageStateOfAnOlderVersionHasNoSubjects(t *testing.T) {
	for _, tt := range []struct {
		schema int64
		want   string
	}{
		{0, "sound, 7 subjects"}, // there is nothing in it
		{1, "sound, of an older version; petstore converts it when it serves"},
		{2, "sound, 7 subjects"},
	} {
		u := usageReport{Report: sqlite.Report{Schema: tt.schema, Latest: 2}, State: "sound", Subjects: 7}
		if got := usageState(u); got != tt.want {
			t.Errorf("the state of a usage file with schema %d is %q, want %q", tt.schema, got, tt.want)
		}
	}
}

// writes counts calls of Write.
type writes int

func (n *writes) Write(p []byte) (int, error) {
	*n++
	return len(p), nil
}

// A list of many keys must not cost a system call for each cell.
func TestATableIsWrittenInLargePieces(t *testing.T) {
	var n writes
	table := newTable(&n, "ID", "OWNER")
	for range 1000 {
		table.row("key_0123456789abcdef", "ada")
	}
	if err := table.flush(); err != nil {
		t.Fatal(err)
	}
	if n > 20 {
		t.Errorf("a table of 1,000 rows was written in %d pieces, want at most 20", n)
	}
}

func testTop(owners, networks int) admin.Top {
	bans := 1
	top := admin.Top{Seconds: 60, Decisions: observe.Decisions{Allowed: 1200, Limited: 30, Banned: 4}, PerSecond: 20.57, Bans: &bans}
	for i := range owners {
		top.Owners = append(top.Owners, admin.Use{Owner: fmt.Sprint("owner", i), Allowed: 1000, Denied: int64(i)})
	}
	for i := range networks {
		top.Networks = append(top.Networks, admin.Use{Network: fmt.Sprintf("192.0.2.%d/32", i), Allowed: 7})
	}
	return top
}

func TestPrintTop(t *testing.T) {
	var b bytes.Buffer
	if err := printTop(&b, testTop(2, 1), 40); err != nil {
		t.Fatal(err)
	}
	want := `Last 60 seconds: 1200 allowed, 30 limited, 4 banned, 0 undecided.
Now 20.6 a second. 1 ban is in force.

OWNER         ALLOWED  DENIED
owner0        1000     0
owner1        1000     1
                       
NETWORK       ALLOWED  DENIED
192.0.2.0/32  7        0
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("printTop (-want +got):\n%s", diff)
	}
}

// A frame of any content fits on the screen, so that it does not scroll.
func TestFrameFits(t *testing.T) {
	now := time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)
	for _, size := range [][2]int{{80, 24}, {40, 12}, {200, 60}, {10, 11}} {
		width, height := size[0], size[1]
		for _, top := range []admin.Top{testTop(20, 20), testTop(20, 0), testTop(0, 20), testTop(0, 0)} {
			for _, err := range []error{nil, errors.New(strings.Repeat("no server answers ", 20))} {
				text := string(frame(top, err, now, width, height))
				lines := strings.Split(strings.TrimSuffix(text, clearBelow), "\n")
				if len(lines) > height {
					t.Errorf("%d owners and %d networks on %dx%d: %d lines", len(top.Owners), len(top.Networks), width, height, len(lines))
				}
				for _, line := range lines {
					line = strings.TrimSuffix(strings.TrimPrefix(line, goHome), clearLine)
					if n := len([]rune(line)); n > width {
						t.Errorf("on %dx%d: a line of %d columns: %q", width, height, n, line)
					}
				}
			}
		}
	}
	if text := string(frame(testTop(20, 20), errors.New("no server answers at X"), now, 80, 24)); !strings.Contains(text, "The numbers are old: no server answers at X"+clearLine) {
		t.Errorf("a frame without the server is %q, want that it says so", text)
	}
}

func TestShare(t *testing.T) {
	for _, tt := range []struct{ a, b, lines, wantA, wantB int }{
		{20, 20, 10, 5, 5}, {20, 20, 11, 5, 6}, {2, 20, 10, 2, 8}, {20, 2, 10, 8, 2}, {1, 1, 10, 1, 1}, {20, 0, 10, 10, 0}, {0, 20, 10, 0, 10}, {20, 20, 40, 20, 20},
	} {
		if a, b := share(tt.a, tt.b, tt.lines); a != tt.wantA || b != tt.wantB {
			t.Errorf("share(%d, %d, %d) = %d, %d, want %d, %d", tt.a, tt.b, tt.lines, a, b, tt.wantA, tt.wantB)
		}
	}
}

func TestBansText(t *testing.T) {
	two := 2
	for want, n := range map[string]*int{"The bans cannot be listed": nil, "2 bans are in force": &two, "0 bans are in force": new(int)} {
		if got := bansText(n); got != want {
			t.Errorf("bansText = %q, want %q", got, want)
		}
	}
}
