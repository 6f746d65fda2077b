package docpage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

type schema struct {
	Type        string          `json:"type"`
	Format      string          `json:"format"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Enum        []string        `json:"enum"`
	Minimum     json.Number     `json:"minimum"`
	Maximum     json.Number     `json:"maximum"`
	MinLength   int             `json:"minLength"`
	MaxLength   int             `json:"maxLength"`
	MaxItems    int             `json:"maxItems"`
	Default     json.RawMessage `json:"default"`
	Required    []string        `json:"required"`
	Properties  ordered         `json:"properties"`
	Items       json.RawMessage `json:"items"`
}

// A Type is what a reader needs to know about the values of a schema.
type Type struct {
	Text   string // such as "integer, 1 to 100"
	Schema string // name of the schema that has a chapter; "" if it has none
	Array  bool   // an array of what Text and Schema say
	Enum   []string
}

// A Property is a row of the table of an object.
type Property struct {
	Name, Description, Default string
	Type                       Type
	Required                   bool
}

// typeOf returns the type of a schema. Schemas with properties have chapters.
func (d *document) typeOf(raw json.RawMessage) (Type, schema, error) {
	s, name, err := resolve[schema](d, raw)
	if err != nil {
		return Type{}, s, err
	}
	if s.Type == "array" {
		t, _, err := d.typeOf(s.Items)
		t.Array = true
		return t, s, err
	}
	t := Type{Text: s.text(), Enum: s.Enum}
	if len(s.Properties) > 0 && name != "" {
		t.Schema = name
	}
	return t, s, nil
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
func (d *document) properties(s schema) ([]Property, error) {
	var rows []Property
	for _, m := range s.Properties {
		t, p, err := d.typeOf(m.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		rows = append(rows, Property{
			Name: m.Name, Description: p.Description, Default: plain(p.Default),
			Type: t, Required: slices.Contains(s.Required, m.Name),
		})
		if t.Schema != "" || t.Array {
			continue
		}
		inner, err := d.properties(p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		for _, row := range inner {
			row.Name = m.Name + "." + row.Name
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// plain returns a JSON value without the quotes of a string.
func plain(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// indent returns a JSON value in lines.
func indent(value json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, value, "", "  ") != nil {
		return string(value)
	}
	return b.String()
}
