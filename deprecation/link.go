package deprecation

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Link is one link of a Link field (RFC 8288 section 3).
type Link struct {
	Target string // a URI-Reference, as it stands between < and >
	Rel    string // relation types, separated by spaces
	Type   string // media type of the target, a hint; "" if not given
	Anchor string // context, if that is not the response itself; "" if not given
}

// Is reports whether rel is among the relation types of the link. Relation types are
// compared without regard to case (RFC 8288 section 2.1).
func (l Link) Is(rel string) bool {
	for r := range strings.FieldsSeq(l.Rel) {
		if lowerASCII(r) == lowerASCII(rel) {
			return true
		}
	}
	return false
}

// FormatLinks returns the value of one Link field that holds the links. It is an
// error if a target or an anchor is not a URI-Reference (a URI template, or a
// space that is not percent-encoded), or a relation type or media type is
// malformed.
func FormatLinks(links ...Link) (string, error) {
	for i, l := range links {
		if err := l.check(); err != nil {
			return "", fmt.Errorf("deprecation: link %d: %w", i, err)
		}
	}
	return formatLinks(links), nil
}

// formatLinks is FormatLinks for links that have been checked.
func formatLinks(links []Link) string {
	var b strings.Builder
	for i, l := range links {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("<" + l.Target + `>; rel="` + l.Rel + `"`)
		if l.Type != "" {
			b.WriteString(`; type="` + l.Type + `"`)
		}
		if l.Anchor != "" {
			b.WriteString(`; anchor="` + l.Anchor + `"`)
		}
	}
	return b.String()
}

func (l Link) check() error {
	if err := checkReference(l.Target); err != nil {
		return fmt.Errorf("target: %w", err)
	}
	if l.Anchor != "" {
		if err := checkReference(l.Anchor); err != nil {
			return fmt.Errorf("anchor: %w", err)
		}
	}
	if l.Rel == "" {
		return errors.New("rel: is empty")
	}
	for rel := range strings.SplitSeq(l.Rel, " ") {
		// A registered name or a URI (RFC 8288 section 3.3). A registered name is made
		// of characters that a URI has too.
		if err := checkReference(rel); err != nil {
			return fmt.Errorf("rel: %w", err)
		}
	}
	if major, minor, ok := strings.Cut(l.Type, "/"); l.Type != "" && (!ok || !isRestrictedName(major) || !isRestrictedName(minor)) {
		return errors.New("type: is not a media type")
	}
	return nil
}

// checkReference reports what keeps s from being a URI-Reference (RFC 3986 section
// 4.1) that can be written into a Link field. url.Parse alone accepts spaces,
// braces and quotes.
func checkReference(s string) error {
	if s == "" {
		return errors.New("is empty")
	}
	for _, c := range s {
		switch {
		case c == '{' || c == '}':
			return errors.New("is a URI template, not a URI reference")
		case c == ' ':
			return errors.New("has a space that is not percent-encoded")
		case c > '~' || !isAlphanumeric(byte(c)) && strings.IndexByte("-._~:/?#[]@!$&'()*+,;=%", byte(c)) < 0:
			return fmt.Errorf("has the character %q, which is not allowed in a URI reference", c)
		}
	}
	for rest := s; ; {
		_, after, found := strings.Cut(rest, "%")
		if !found {
			break
		}
		if len(after) < 2 || !isHex(after[0]) || !isHex(after[1]) {
			return errors.New("has a percent sign that is not followed by two hexadecimal digits")
		}
		rest = after[2:]
	}
	if _, err := url.Parse(s); err != nil {
		return errors.New("is not a URI reference")
	}
	return nil
}

// isRestrictedName reports whether s can be a half of a media type (RFC 6838
// section 4.2).
func isRestrictedName(s string) bool {
	if s == "" || len(s) > 127 || !isAlphanumeric(s[0]) {
		return false
	}
	for _, c := range []byte(s) {
		if !isAlphanumeric(c) && strings.IndexByte("!#$&-^_.+", c) < 0 {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'F' || c >= 'a' && c <= 'f'
}

// lowerASCII is strings.ToLower for ASCII. Unicode has letters outside ASCII, such
// as the long s, that fold to ASCII ones.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
