package jsonbody

import "strings"

// problem is one fault of a body.
type problem struct {
	pointer string // where: a JSON Pointer (RFC 6901); "" is the whole body
	detail  string // what: the rest of a sentence about that place
	whole   bool   // the fault is of the text, not of a value in it
}

// maxPointer is how many bytes of member names that a client invented are sent back.
const maxPointer = 256

// within prefixes the pointer of p with a member or an element. It is called on the way
// out of nested values, so that only invalid values pay for their pointers.
func (p *problem) within(token string) *problem {
	if p.whole {
		return p
	}
	p.pointer = "/" + escapePointer(token) + p.pointer
	return p
}

// truncatePointer shortens a pointer that is too long to that of an outer value.
func truncatePointer(pointer string) string {
	for len(pointer) > maxPointer {
		pointer = pointer[:strings.LastIndexByte(pointer, '/')]
	}
	return pointer
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

func escapePointer(token string) string { return pointerEscaper.Replace(token) }

var pointerUnescaper = strings.NewReplacer("~1", "/", "~0", "~")

func unescapePointer(token string) string { return pointerUnescaper.Replace(token) }
