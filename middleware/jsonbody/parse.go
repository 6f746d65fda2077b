package jsonbody

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// limits are those of one body (RFC 8259 section 9).
type limits struct{ depth, values int }

const (
	defaultDepth  = 16
	defaultValues = 2_500

	// maxPath is the largest length of the path of member names and slashes to a value.
	// The validator builds this text again for every value.
	maxPath = 512
)

func newLimits(o Options) limits {
	l := limits{depth: o.MaxDepth, values: o.MaxValues}
	if l.depth == 0 {
		l.depth = defaultDepth
	}
	if l.values == 0 {
		l.values = defaultValues
	}
	return l
}

// parse reads one JSON text (RFC 8259 section 2) into the types that the validator
// knows: map[string]any, []any, string, json.Number, bool and nil.
func parse(data []byte, l limits) (any, *problem) {
	switch {
	case bytes.HasPrefix(data, []byte("\uFEFF")):
		return nil, &problem{whole: true, detail: "begins with a byte order mark, which JSON does not allow"}
	case !utf8.Valid(data):
		return nil, &problem{whole: true, detail: "is not valid UTF-8"}
	}
	p := parser{data: data, limits: l}
	p.space()
	if p.pos == len(data) {
		return nil, &problem{whole: true, detail: "is empty"}
	}
	v, err := p.value(1)
	if err != nil {
		err.pointer = truncatePointer(err.pointer)
		return nil, err
	}
	p.space()
	if p.pos != len(data) {
		return nil, &problem{whole: true, detail: "has more data after its JSON value, at offset " + strconv.Itoa(p.pos)}
	}
	return v, nil
}

type parser struct {
	data   []byte // valid UTF-8
	pos    int
	limits limits
	count  int // of values so far
	path   int // bytes of the names above the current value
}

// value reads a value at p.pos. The depth is that of the value if it is an object
// or an array.
func (p *parser) value(depth int) (any, *problem) {
	if p.count++; p.count > p.limits.values {
		return nil, &problem{whole: true, detail: fmt.Sprintf("has more than %d values", p.limits.values)}
	}
	switch c := p.peek(); {
	case c == '{' || c == '[':
		if depth > p.limits.depth {
			return nil, &problem{whole: true, detail: fmt.Sprintf("is nested more than %d levels deep", p.limits.depth)}
		}
		p.pos++
		if c == '{' {
			return p.object(depth)
		}
		return p.array(depth)
	case c == '"':
		return p.string()
	case c == '-' || isDigit(c):
		return p.number()
	case p.literal("true"):
		return true, nil
	case p.literal("false"):
		return false, nil
	case p.literal("null"):
		return nil, nil
	default:
		return nil, p.unexpected()
	}
}

// object reads the rest of an object after its brace.
func (p *parser) object(depth int) (any, *problem) {
	members := make(map[string]any)
	p.space()
	if p.take('}') {
		return members, nil
	}
	for {
		p.space()
		if p.peek() != '"' {
			return nil, p.unexpected()
		}
		name, err := p.string()
		if err != nil {
			return nil, err
		}
		if p.path+1+len(name) > maxPath {
			return nil, &problem{detail: fmt.Sprintf("has a member with a path of more than %d bytes", maxPath)}
		}
		if _, repeated := members[name]; repeated {
			return nil, (&problem{detail: "occurs more than once"}).within(name)
		}
		p.space()
		if !p.take(':') {
			return nil, p.unexpected()
		}
		p.space()
		p.path += 1 + len(name)
		v, err := p.value(depth + 1)
		p.path -= 1 + len(name)
		if err != nil {
			return nil, err.within(name)
		}
		members[name] = v
		p.space()
		if p.take('}') {
			return members, nil
		}
		if !p.take(',') {
			return nil, p.unexpected()
		}
	}
}

// array reads the rest of an array after its bracket.
func (p *parser) array(depth int) (any, *problem) {
	elements := []any{}
	p.space()
	if p.take(']') {
		return elements, nil
	}
	for {
		p.space()
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err.within(strconv.Itoa(len(elements)))
		}
		elements = append(elements, v)
		p.space()
		if p.take(']') {
			return elements, nil
		}
		if !p.take(',') {
			return nil, p.unexpected()
		}
	}
}

// number reads a number token of RFC 8259 section 6.
func (p *parser) number() (any, *problem) {
	start := p.pos
	p.take('-')
	if !p.take('0') && p.digits() == 0 {
		return nil, p.unexpected()
	}
	if p.take('.') && p.digits() == 0 {
		return nil, p.unexpected()
	}
	if p.take('e') || p.take('E') {
		if !p.take('+') {
			p.take('-')
		}
		if p.digits() == 0 {
			return nil, p.unexpected()
		}
	}
	token := p.data[start:p.pos]
	if detail := checkNumber(token); detail != "" {
		return nil, &problem{detail: detail}
	}
	return json.Number(token), nil
}

func (p *parser) digits() int {
	start := p.pos
	for isDigit(p.peek()) {
		p.pos++
	}
	return p.pos - start
}

func (p *parser) space() {
	for p.pos < len(p.data) {
		switch p.data[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// peek returns the next byte, or 0 at the end: a NUL is nowhere allowed.
func (p *parser) peek() byte {
	if p.pos < len(p.data) {
		return p.data[p.pos]
	}
	return 0
}

func (p *parser) take(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.pos++
	return true
}

func (p *parser) literal(s string) bool {
	if !bytes.HasPrefix(p.data[p.pos:], []byte(s)) {
		return false
	}
	p.pos += len(s)
	return true
}

// unexpected is a violation of the grammar at p.pos.
func (p *parser) unexpected() *problem {
	if p.pos >= len(p.data) {
		return &problem{whole: true, detail: "is not valid JSON: it ends too early"}
	}
	return &problem{whole: true, detail: "is not valid JSON: unexpected character at offset " + strconv.Itoa(p.pos)}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
