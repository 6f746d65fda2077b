package jsonbody

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxPath is the largest length of the path of member names and slashes to a value. The
// validator builds this text again for every value.
const maxPath = 512

const whiteSpace = " \t\r\n"

// parse reads one JSON text (RFC 8259 section 2) into the types that the validator
// knows: map[string]any, []any, string, json.Number, bool and nil. The grammar is that
// of encoding/json; parse also refuses what encoding/json lets pass or repairs, and
// what exceeds the limits in o (RFC 8259 section 9).
func parse(data []byte, o Options) (any, *problem) {
	switch {
	case bytes.HasPrefix(data, []byte("\uFEFF")):
		return nil, &problem{whole: true, detail: "begins with a byte order mark, which JSON does not allow"}
	case !utf8.Valid(data):
		return nil, &problem{whole: true, detail: "is not valid UTF-8"}
	case len(bytes.Trim(data, whiteSpace)) == 0:
		return nil, &problem{whole: true, detail: "is empty"}
	}
	p := parser{data: data, tokens: json.NewDecoder(bytes.NewReader(data)), limits: o}
	p.tokens.UseNumber()
	v, err := p.value(1)
	if err != nil {
		return nil, err
	}
	end := p.tokens.InputOffset()
	if rest := bytes.TrimLeft(data[end:], whiteSpace); len(rest) > 0 {
		return nil, &problem{whole: true, detail: fmt.Sprintf("has more data after its JSON value, at offset %d", len(data)-len(rest))}
	}
	if at := unpairedSurrogate(data); at >= 0 {
		return nil, &problem{whole: true, detail: fmt.Sprintf("has an unpaired surrogate at offset %d", at)}
	}
	return v, nil
}

type parser struct {
	data   []byte
	tokens *json.Decoder
	limits Options
	count  int // of values so far
	path   int // bytes of the names above the current value
}

// value reads the next value. The depth belongs to the value if it is an object or an
// array.
func (p *parser) value(depth int) (any, *problem) {
	if p.count++; p.count > p.limits.MaxValues {
		return nil, &problem{whole: true, detail: fmt.Sprintf("has more than %d values", p.limits.MaxValues)}
	}
	token, err := p.tokens.Token()
	if err != nil {
		return nil, p.malformed()
	}
	switch token := token.(type) {
	case json.Delim:
		if depth > p.limits.MaxDepth {
			return nil, &problem{whole: true, detail: fmt.Sprintf("is nested more than %d levels deep", p.limits.MaxDepth)}
		}
		if token == '{' {
			return p.object(depth)
		}
		return p.array(depth)
	case json.Number:
		if detail := checkNumber(token.String()); detail != "" {
			return nil, &problem{detail: detail}
		}
	}
	return token, nil
}

// object reads the rest of an object after its brace.
func (p *parser) object(depth int) (any, *problem) {
	members := make(map[string]any)
	for p.tokens.More() {
		token, err := p.tokens.Token()
		if err != nil {
			return nil, p.malformed()
		}
		name, _ := token.(string) // Token takes nothing else here
		if p.path+1+len(name) > maxPath {
			return nil, &problem{detail: fmt.Sprintf("has a member with a path of more than %d bytes", maxPath)}
		}
		if _, repeated := members[name]; repeated {
			return nil, (&problem{detail: "occurs more than once"}).within(name)
		}
		p.path += 1 + len(name)
		v, invalid := p.value(depth + 1)
		p.path -= 1 + len(name)
		if invalid != nil {
			return nil, invalid.within(name)
		}
		members[name] = v
	}
	return members, p.end()
}

// array reads the rest of an array after its bracket.
func (p *parser) array(depth int) (any, *problem) {
	elements := []any{}
	for p.tokens.More() {
		v, invalid := p.value(depth + 1)
		if invalid != nil {
			return nil, invalid.within(strconv.Itoa(len(elements)))
		}
		elements = append(elements, v)
	}
	return elements, p.end()
}

// end reads the closing brace or bracket.
func (p *parser) end() *problem {
	if _, err := p.tokens.Token(); err != nil {
		return p.malformed()
	}
	return nil
}

// malformed says where the text violates the grammar. It asks Decode, since the offsets
// of Token can differ from the text.
func (p *parser) malformed() *problem {
	var text json.RawMessage
	err := json.NewDecoder(bytes.NewReader(p.data)).Decode(&text)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return &problem{whole: true, detail: fmt.Sprintf("is not valid JSON: unexpected character at offset %d", syntax.Offset-1)}
	}
	return &problem{whole: true, detail: "is not valid JSON: it ends too early"}
}

// unpairedSurrogate returns the offset of an escape in a JSON text that is half of a
// surrogate pair, or -1. encoding/json would replace it.
func unpairedSurrogate(text []byte) int {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		half := escapedUnit(text[i:])
		if utf16.IsSurrogate(half) {
			if utf16.DecodeRune(half, escapedUnit(text[i+6:])) == utf8.RuneError {
				return i
			}
			i += 6
		}
		i++ // the character after the backslash, which may be another one
	}
	return -1
}

// escapedUnit returns the code unit of the \u escape with which text begins, or 0.
func escapedUnit(text []byte) rune {
	if !bytes.HasPrefix(text, []byte(`\u`)) {
		return 0
	}
	unit, _ := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(unit)
}
