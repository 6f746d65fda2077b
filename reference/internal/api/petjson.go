package api

import (
	"strconv"
	"unicode/utf8"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// encodePets returns pets as one line of JSON, an array. Its bytes are those of
// [encode], which takes several times as long.
func encodePets(pets []store.Pet) ([]byte, error) {
	const usual = 80 // bytes of a pet
	b := make([]byte, 0, len(pets)*usual+len("[]\n"))
	b = append(b, '[')
	for i, p := range pets {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendPet(b, p); err != nil {
			return nil, err
		}
	}
	return append(b, "]\n"...), nil
}

// encodePet returns a pet as one line of JSON. See [encodePets].
func encodePet(p store.Pet) ([]byte, error) {
	b, err := appendPet(nil, p)
	if err != nil {
		return nil, err
	}
	return append(b, '\n'), nil
}

func appendPet(b []byte, p store.Pet) (_ []byte, err error) {
	b = append(b, `{"id":`...)
	b = strconv.AppendInt(b, p.ID, 10)
	b = append(b, `,"name":`...)
	if b, err = appendString(b, p.Name); err != nil {
		return nil, err
	}
	b = append(b, `,"categoryId":`...)
	b = strconv.AppendInt(b, p.CategoryID, 10)
	b = append(b, `,"status":`...)
	if b, err = appendString(b, string(p.Status)); err != nil {
		return nil, err
	}
	return append(b, '}'), nil
}

// appendString appends a JSON string. It leaves the text with characters that must be
// escaped to encode.
func appendString(b []byte, text string) ([]byte, error) {
	if needsEscape(text) {
		line, err := encode(text)
		if err != nil {
			return nil, err
		}
		return append(b, line[:len(line)-1]...), nil
	}
	b = append(b, '"')
	b = append(b, text...)
	return append(b, '"'), nil
}

// needsEscape reports whether a text has characters that encoding/json escapes or
// replaces.
func needsEscape(text string) bool {
	for _, c := range text {
		switch {
		case c < ' ', c == '"', c == '\\', c == utf8.RuneError, c == '\u2028', c == '\u2029':
			return true
		}
	}
	return false
}
