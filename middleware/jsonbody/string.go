package jsonbody

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// string reads a string at its opening quote (RFC 8259 section 7).
func (p *parser) string() (string, *problem) {
	p.pos++
	start := p.pos
	for p.pos < len(p.data) {
		switch c := p.data[p.pos]; {
		case c == '"':
			s := string(p.data[start:p.pos])
			p.pos++
			return s, nil
		case c == '\\':
			return p.escaped(start)
		case c < ' ':
			return "", p.unexpected()
		}
		p.pos++
	}
	return "", p.unexpected()
}

// escaped reads on at the first escape of a string that began at start.
func (p *parser) escaped(start int) (string, *problem) {
	s := append([]byte(nil), p.data[start:p.pos]...)
	for p.pos < len(p.data) {
		switch c := p.data[p.pos]; {
		case c == '"':
			p.pos++
			return string(s), nil
		case c == '\\':
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			s = utf8.AppendRune(s, r)
		case c < ' ':
			return "", p.unexpected()
		default:
			s = append(s, c)
			p.pos++
		}
	}
	return "", p.unexpected()
}

// escape reads one escape, or the two that make a surrogate pair.
func (p *parser) escape() (rune, *problem) {
	start := p.pos
	p.pos++
	c := p.peek()
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		p.pos++
		r, err := p.hex()
		if err != nil || !utf16.IsSurrogate(r) {
			return r, err
		}
		if p.take('\\') && p.take('u') {
			low, err := p.hex()
			if err != nil {
				return 0, err
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				return r, nil
			}
		}
		return 0, &problem{whole: true, detail: "has an unpaired surrogate at offset " + strconv.Itoa(start)}
	default:
		return 0, p.unexpected()
	}
	p.pos++
	return rune(c), nil
}

// hex reads the four digits of a \u escape.
func (p *parser) hex() (rune, *problem) {
	var r rune
	for range 4 {
		c := p.peek()
		switch {
		case isDigit(c):
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, p.unexpected()
		}
		r = r<<4 | rune(c)
		p.pos++
	}
	return r, nil
}
