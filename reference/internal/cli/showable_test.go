package cli

import (
	"bytes"
	"errors"
	"testing"
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
	want := "petstore: 127.0.0.1:9090 answered 500 \ufffd]0;pwned\ufffd: \ufffdtxt\ufffd\ufffd2J\npetstore: next line\n"
	if got := b.String(); got != want {
		t.Errorf("the message is\n%q, want\n%q", got, want)
	}
}
