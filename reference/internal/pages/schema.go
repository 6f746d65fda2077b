package pages

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A document finds what the references of an OpenAPI document refer to.
type document struct {
	Components map[string]map[string]json.RawMessage // by kind and name

	err error // the first one
}

func (d *document) check(err error) {
	if d.err == nil {
		d.err = err
	}
}

// resolve decodes raw. If raw is a reference to a component, it decodes that, and then the
// members beside $ref over it (OpenAPI 3.1). name is the name of the component, such as
// "Pet", or "" if raw is not a reference.
func resolve[T any](d *document, raw json.RawMessage) (value T, name string) {
	var r struct {
		Ref string `json:"$ref"`
	}
	d.check(json.Unmarshal(raw, &r))
	if r.Ref != "" && d.err == nil {
		kind, component, _ := strings.Cut(strings.TrimPrefix(r.Ref, "#/components/"), "/")
		target, ok := d.Components[kind][component]
		if !ok {
			d.check(fmt.Errorf("there is no component %s", r.Ref))
			return value, ""
		}
		value, _ = resolve[T](d, target)
		name = component
	}
	d.check(json.Unmarshal(raw, &value))
	return value, name
}

type schema struct {
	Type, Description    string
	Enum                 []string
	Minimum, Maximum     json.Number
	MinLength, MaxLength int
	Default              json.RawMessage
	Required             []string
	Properties           ordered
	Items                json.RawMessage
}

// A valueType is what a reader needs to know about the values of a schema.
type valueType struct {
	Text   string // such as "integer, 1 to 100"
	Schema string // name of the schema that has a chapter; "" if it has none
	Array  bool   // an array of what Text and Schema say
	Enum   []string
}

// A property is a row of the table of an object.
type property struct {
	Name, Description, Default string
	Type                       valueType
	Required                   bool
}

// typeOf returns the type of a schema. Schemas with properties have chapters.
func (d *document) typeOf(raw json.RawMessage) (valueType, schema) {
	s, name := resolve[schema](d, raw)
	if s.Type == "array" && d.err == nil {
		t, _ := d.typeOf(s.Items)
		t.Array = true
		return t, s
	}
	t := valueType{Text: s.text(), Enum: s.Enum}
	if len(s.Properties) > 0 {
		t.Schema = name
	}
	return t, s
}

// text describes the values: "integer, 1 to 100".
func (s schema) text() string {
	parts := []string{s.Type}
	switch low, high := s.Minimum.String(), s.Maximum.String(); {
	case low == "" && high == "":
	case high == "", high == "9223372036854775807" && !strings.HasPrefix(low, "-"):
		parts = append(parts, "at least "+low)
	case high == "9223372036854775807":
		parts = append(parts, "64 bits")
	default:
		parts = append(parts, low+" to "+high)
	}
	switch {
	case s.MaxLength > 0 && s.MinLength > 0:
		parts = append(parts, fmt.Sprintf("%d to %d characters", s.MinLength, s.MaxLength))
	case s.MaxLength > 0:
		parts = append(parts, fmt.Sprintf("at most %d characters", s.MaxLength))
	}
	return strings.Join(parts, ", ")
}

// properties returns the rows of an object.
func (d *document) properties(s schema) []property {
	var rows []property
	for _, m := range s.Properties {
		t, p := d.typeOf(m.Value)
		rows = append(rows, property{
			Name: m.Name, Description: p.Description, Default: plain(p.Default),
			Type: t, Required: slices.Contains(s.Required, m.Name),
		})
		if t.Schema != "" || t.Array {
			continue
		}
		for _, row := range d.properties(p) {
			row.Name = m.Name + "." + row.Name
			rows = append(rows, row)
		}
	}
	return rows
}

// plain returns a JSON value without the quotes of a string.
func plain(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// ordered is a JSON object that keeps the order of its members, since that is the order
// in which the author wants them read.
type ordered []member

type member struct {
	Name  string
	Value json.RawMessage
}

// UnmarshalJSON implements [json.Unmarshaler].
func (o *ordered) UnmarshalJSON(object []byte) error {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.Join(errors.New("not an object"), err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		m := member{Name: name.(string)} // the Decoder accepts only strings as names
		if err := d.Decode(&m.Value); err != nil {
			return err
		}
		*o = append(*o, m)
	}
	return nil
}
