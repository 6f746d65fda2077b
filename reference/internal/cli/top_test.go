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
)

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
