package cli

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// showable quotes text with characters that are invisible or change how other text is
// shown, such as zero-width spaces, bidirectional controls and spaces at an end. Different
// texts are shown differently.
func showable(text string) string {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, hidden) || strings.TrimSpace(text) != text || strings.HasPrefix(text, `"`) {
		return escape(strconv.Quote(text))
	}
	return text
}

// escape writes hidden characters as in Go, and U+FFFD instead of bytes that are not UTF-8,
// so that text from elsewhere cannot control a terminal.
func escape(text string) string {
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	if !strings.ContainsFunc(text, hidden) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

// hidden reports whether a character cannot be seen. [unicode.IsPrint] counts some of them
// as letters, symbols or marks, such as the Hangul filler and variation selectors.
func hidden(r rune) bool {
	const brailleBlank = '\u2800'
	return !unicode.IsPrint(r) || r == brailleBlank || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
