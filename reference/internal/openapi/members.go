package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// members is a JSON object that keeps the order of its members, for people that read
// the document.
type members []member

type member struct {
	name  string
	value json.RawMessage
}

func membersOf(object json.RawMessage) (members, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.Join(errors.New("not an object"), err)
	}
	var ms members
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		m := member{name: name.(string)} // the Decoder accepts only strings as names
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		ms = append(ms, m)
	}
	return ms, nil
}

func (ms members) encode() (json.RawMessage, error) {
	b := []byte{'{'}
	for i, m := range ms {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		b = append(b, name...)
		b = append(b, ':')
		b = append(b, m.value...)
	}
	return append(b, '}'), nil
}

type edit func(value json.RawMessage) (json.RawMessage, error)

// editEach returns object with each member edited.
func editEach(object json.RawMessage, e edit) (json.RawMessage, error) {
	return editWhere(object, func(string) bool { return true }, e)
}

// editMember returns object with one member edited, which must be there.
func editMember(object json.RawMessage, name string, e edit) (json.RawMessage, error) {
	found := false
	edited, err := editWhere(object, func(n string) bool { found = found || n == name; return n == name }, e)
	if err == nil && !found {
		err = fmt.Errorf("%s: missing", name)
	}
	return edited, err
}

func editWhere(object json.RawMessage, where func(name string) bool, e edit) (json.RawMessage, error) {
	ms, err := membersOf(object)
	if err != nil {
		return nil, err
	}
	for i, m := range ms {
		if !where(m.name) {
			continue
		}
		if ms[i].value, err = e(m.value); err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return ms.encode()
}
