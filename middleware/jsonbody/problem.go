package jsonbody

import "strings"

// problem is one thing that is wrong with a body.
type problem struct {
	pointer string // where: a JSON Pointer (RFC 6901); "" is the whole body
	detail  string // what: the rest of a sentence about that place
	whole   bool   // the text is at fault rather than a value in it
}

// maxPointer bounds what of a client's member names is sent back.
const maxPointer = 256

// under puts the place of p below a member or an element. It is called on the way
// out of nested values, so that only what fails pays for its pointer.
func (p *problem) under(token string) *problem {
	if p.whole {
		return p
	}
	p.pointer = "/" + escapePointer(token) + p.pointer
	return p
}

// bounded cuts a pointer that is too long to one of the containers of its place.
func bounded(pointer string) string {
	for len(pointer) > maxPointer {
		pointer = pointer[:strings.LastIndexByte(pointer, '/')]
	}
	return pointer
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

func escapePointer(token string) string { return pointerEscaper.Replace(token) }

var pointerUnescaper = strings.NewReplacer("~1", "/", "~0", "~")

func unescapePointer(token string) string { return pointerUnescaper.Replace(token) }
