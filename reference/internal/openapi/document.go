package openapi

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
)

// NewPetSchema refers to the schema of the body of createPet within the document.
const NewPetSchema = "#/components/schemas/NewPet"

//go:embed openapi.json
var source []byte

// Document is the OpenAPI document as a server publishes it. It does not change,
// and is safe for concurrent use.
type Document struct {
	json  []byte
	limit Range
}

// Range is the range of an integer parameter and its default.
type Range struct {
	Min     int `json:"minimum"`
	Max     int `json:"maximum"`
	Default int `json:"default"`
}

// New returns the document. It marks exactly the operations with a notice, by
// operationId, as deprecated. An unknown operationId is an error.
func New(notices map[string]deprecation.Notice) (*Document, error) {
	marked, err := mark(source, notices)
	if err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, marked); err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	d := &Document{json: compact.Bytes()}
	if d.limit, err = limitOf(d.json); err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	return d, nil
}

// JSON returns the document in one line. It must not be changed.
func (d *Document) JSON() []byte { return d.json }

// Limit returns the bounds and the default of the parameter limit.
func (d *Document) Limit() Range { return d.limit }

func limitOf(document []byte) (Range, error) {
	var d struct {
		Components struct {
			Parameters struct {
				Limit struct{ Schema Range }
			}
		}
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return Range{}, err
	}
	limit := d.Components.Parameters.Limit.Schema
	if limit.Min < 1 || limit.Default < limit.Min || limit.Max < limit.Default {
		return Range{}, errors.New("the parameter limit has no bounds, or a default outside of them")
	}
	return limit, nil
}

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

// mark returns the document with exactly the operations marked that have a notice.
func mark(document []byte, notices map[string]deprecation.Notice) ([]byte, error) {
	unknown := maps.Clone(notices)
	marked, err := editMember(document, "paths", func(paths json.RawMessage) (json.RawMessage, error) {
		return editEach(paths, func(item json.RawMessage) (json.RawMessage, error) {
			return editEach(item, func(operation json.RawMessage) (json.RawMessage, error) {
				var o struct{ OperationID string }
				if err := json.Unmarshal(operation, &o); err != nil {
					return nil, err
				}
				notice, deprecated := notices[o.OperationID]
				delete(unknown, o.OperationID)
				return markOperation(operation, notice, deprecated)
			})
		})
	})
	if err != nil {
		return nil, err
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("unknown operations %q", slices.Sorted(maps.Keys(unknown)))
	}
	return marked, nil
}

// markOperation sets or removes the members about the deprecation of an operation.
// OpenAPI defines only deprecated. Tools that compare documents for breaking changes
// know x-sunset.
func markOperation(operation json.RawMessage, n deprecation.Notice, deprecated bool) (json.RawMessage, error) {
	o, err := membersOf(operation)
	if err != nil {
		return nil, err
	}
	if deprecated && n.Since.IsZero() {
		return nil, errors.New("a notice does not say since when the operation is deprecated")
	}
	for _, m := range []struct {
		name  string
		value any
		set   bool
	}{
		{"deprecated", true, deprecated},
		{"x-deprecated-since", n.Since.UTC().Format(time.DateOnly), deprecated},
		{"x-sunset", n.Sunset.UTC().Format(time.DateOnly), deprecated && !n.Sunset.IsZero()},
		{"x-successor", n.Successor, deprecated && n.Successor != ""},
	} {
		o = slices.DeleteFunc(o, func(have member) bool { return have.name == m.name })
		if !m.set {
			continue
		}
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		o = append(o, member{m.name, value})
	}
	return o.encode()
}
