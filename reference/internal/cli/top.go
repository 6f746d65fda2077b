package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/animalstore/gatehouse/reference/internal/admin"
)

type topCmd struct {
	Once bool `help:"Print once instead of every second. This is the default if standard output is not a terminal."`
	JSON bool `help:"Print once, as JSON."`
	adminFlags
}

// Help is shown by --help.
func (topCmd) Help() string {
	return `The numbers are of the last 60 seconds. Denied requests were limited or banned.
Networks are callers without a valid key. Only charged requests are counted. On a terminal,
the display is renewed every second until you press Ctrl-C.`
}

func (c topCmd) Run(ctx context.Context, o output) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	top, err := client.Top(ctx)
	if err != nil {
		return explainAdmin(err)
	}
	terminal := term.IsTerminal(int(o.out.Fd()))
	switch {
	case c.JSON:
		return printJSON(o.out, top)
	case c.Once || !terminal:
		return printTop(o.out, top, len(top.Owners)+len(top.Networks))
	}
	return watchTop(ctx, client, o.out, top)
}

// watchTop shows what the server answers, every second until ctx ends. It goes on while
// the server does not answer.
func watchTop(ctx context.Context, client admin.Client, out *os.File, top admin.Top) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var err error
	if _, err := io.WriteString(out, clearScreen); err != nil {
		return err
	}
	for {
		width, height, sizeErr := term.GetSize(int(out.Fd()))
		if sizeErr != nil {
			width, height = 80, 24
		}
		if _, err := out.Write(frame(top, err, time.Now(), width, height)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		var next admin.Top
		if next, err = client.Top(ctx); err == nil {
			top = next
		}
	}
}

// The control sequences of a terminal (ECMA-48) that are used.
const (
	clearScreen = "\x1b[2J"
	goHome      = "\x1b[H"
	clearLine   = "\x1b[K" // from the cursor to the end of the line
	clearBelow  = "\x1b[J" // from the cursor to the end of the screen
)

// fixedLines are the lines of a frame beside owners and networks: two of frame, and
// those of printTop.
const fixedLines = 2 + 6

// frame returns what a terminal of a size shows. While the server does not answer, that
// is the last answer and the error. It overwrites the frame before it, because clearing
// the screen first would make it flicker.
func frame(top admin.Top, err error, now time.Time, width, height int) []byte {
	var text bytes.Buffer
	fmt.Fprintf(&text, "petstore top, %s; Ctrl-C ends it\n", showTime(now))
	if err != nil {
		fmt.Fprintf(&text, "The numbers are old: %s\n", escape(err.Error()))
	} else {
		fmt.Fprintln(&text)
	}
	_ = printTop(&text, top, max(height-1-fixedLines, 2))

	b := bytes.NewBufferString(goHome)
	for line := range strings.Lines(text.String()) {
		if runes := []rune(strings.TrimSuffix(line, "\n")); len(runes) > width {
			line = string(runes[:width]) + "\n"
		}
		b.WriteString(strings.TrimSuffix(line, "\n") + clearLine + "\n")
	}
	b.WriteString(clearBelow)
	return b.Bytes()
}

// printTop prints at most a number of owners and networks together.
func printTop(w io.Writer, top admin.Top, clients int) error {
	owners, networks := share(len(top.Owners), len(top.Networks), clients)
	d := top.Decisions
	suspended := ""
	if d.Suspended > 0 { // few servers have such a plan
		suspended = fmt.Sprintf("%d suspended, ", d.Suspended)
	}
	fmt.Fprintf(w, "Last %d seconds: %d allowed, %d limited, %d banned, %s%d undecided.\nNow %.1f a second. %s.\n\n",
		top.Seconds, d.Allowed, d.Limited, d.Banned, suspended, d.Undecided, top.PerSecond, bansText(top.Bans))
	t := newTable(w, "OWNER", "ALLOWED", "DENIED")
	for _, u := range top.Owners[:owners] {
		t.row(u.Owner, u.Allowed, u.Denied)
	}
	t.row("", "", "")
	t.row("NETWORK", "ALLOWED", "DENIED")
	for _, u := range top.Networks[:networks] {
		t.row(u.Network, u.Allowed, u.Denied)
	}
	return t.flush()
}

// share divides a number of lines among two lists. What one does not need, the other gets.
func share(a, b, lines int) (int, int) {
	fromA := min(a, max(lines/2, lines-b))
	return fromA, min(b, lines-fromA)
}

func bansText(n *int) string {
	switch {
	case n == nil:
		return "The bans cannot be listed"
	case *n == 1:
		return "1 ban is in force"
	default:
		return strconv.Itoa(*n) + " bans are in force"
	}
}
