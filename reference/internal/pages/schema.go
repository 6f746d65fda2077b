package pages

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

type schema struct {
	Name                 string `json:"x-name"` // if a reference led to it; see resolve
	Type, Description    string
	Enum                 []string
	Minimum, Maximum     json.Number
	MinLength, MaxLength int
	Default              text
	Required             []string
	Properties           object[*schema]
	Items                *schema
}

// Text describes the values: "integer, 1 to 100".
func (s *schema) Text() string {
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

// Rows returns the rows of the table of an object: its properties, and the properties of
// inner objects without a chapter of their own, such as "ban.ends".
func (s *schema) Rows() []parameter {
	var rows []parameter
	for _, p := range s.Properties {
		rows = append(rows, parameter{Name: p.Name, Description: p.Value.Description, Required: slices.Contains(s.Required, p.Name), Schema: p.Value})
		if p.Value.Name != "" {
			continue
		}
		for _, inner := range p.Value.Rows() {
			inner.Name = p.Name + "." + inner.Name
			rows = append(rows, inner)
		}
	}
	return rows
}

var reference = regexp.MustCompile(`\{"\$ref":"([^"]*)"\}`)

// resolve returns an OpenAPI document in which the components replace the references to them.
// Each such component has its name as x-name.
func resolve(document []byte) ([]byte, error) {
	var compact bytes.Buffer // where references have one form
	var d struct {
		Components map[string]map[string]json.RawMessage // by kind and name
	}
	err := json.Compact(&compact, document)
	if err = errors.Join(err, json.Unmarshal(compact.Bytes(), &d)); err != nil {
		return nil, err
	}
	var within []string // the references that are being replaced
	var replace func([]byte) []byte
	replace = func(value []byte) []byte {
		return reference.ReplaceAllFunc(value, func(found []byte) []byte {
			ref := string(reference.FindSubmatch(found)[1])
			kind, name, _ := strings.Cut(strings.TrimPrefix(ref, "#/components/"), "/")
			target, ok := d.Components[kind][name]
			if !ok || slices.Contains(within, ref) {
				err = fmt.Errorf("there is no component %s, or it is within itself", ref)
				return found
			}
			within = append(within, ref)
			defer func() { within = within[:len(within)-1] }()
			return replace(bytes.Replace(target, []byte("{"), fmt.Appendf(nil, `{"x-name":%q,`, name), 1))
		})
	}
	return replace(compact.Bytes()), err
}

// An object is a JSON object that keeps the order of its members, since that is the order
// in which the author wants them read.
type object[T any] []member[T]

type member[T any] struct {
	Name  string
	Value T
}

// UnmarshalJSON implements [json.Unmarshaler].
func (o *object[T]) UnmarshalJSON(value []byte) error {
	d := json.NewDecoder(bytes.NewReader(value))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.Join(errors.New("not an object"), err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		m := member[T]{Name: name.(string)} // the Decoder accepts only strings as names
		if err := d.Decode(&m.Value); err != nil {
			return err
		}
		*o = append(*o, m)
	}
	return nil
}
