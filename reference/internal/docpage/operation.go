package docpage

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// An Operation is a chapter of the page.
type Operation struct {
	ID, Method, Path     string // Path has no server
	Summary, Description string
	Deprecation          *Deprecation
	Parameters           []Parameter
	Body                 *Body
	Responses            []Response

	tags []string
}

// A Deprecation says since when and until when, as dates such as "5 December 2030".
type Deprecation struct {
	Since, Sunset string // "" if not given
	Successor     string
	SuccessorLink string // "" if it is not known what to link to
}

// A Parameter is an input field of the form, too.
type Parameter struct {
	Name, In, Description, Default, Example string
	Type                                    Type
	Required                                bool
}

// Hint is what an empty field shows.
func (p Parameter) Hint() string {
	switch {
	case p.Default != "":
		return p.Default + " by default"
	case p.Example != "":
		return "such as " + p.Example
	default:
		return ""
	}
}

// Numeric reports whether the field is for digits.
func (p Parameter) Numeric() bool { return strings.HasPrefix(p.Type.Text, "integer") }

// A Body is the body of a request.
type Body struct {
	Description, Example string
	Type                 Type
	Properties           []Property
}

type operation struct {
	OperationID string            `json:"operationId"`
	Tags        []string          `json:"tags"`
	Summary     string            `json:"summary"`
	Description string            `json:"description"`
	Deprecated  bool              `json:"deprecated"`
	Since       string            `json:"x-deprecated-since"`
	Sunset      string            `json:"x-sunset"`
	Successor   string            `json:"x-successor"`
	Parameters  []json.RawMessage `json:"parameters"`
	RequestBody json.RawMessage   `json:"requestBody"`
	Responses   ordered           `json:"responses"`
}

// methods are the members of a path item that are operations.
var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}

func (d *document) operation(method, path string, raw json.RawMessage) (Operation, error) {
	var o operation
	if err := json.Unmarshal(raw, &o); err != nil {
		return Operation{}, err
	}
	op := Operation{
		ID: o.OperationID, Method: strings.ToUpper(method), Path: path,
		Summary: o.Summary, Description: o.Description, tags: o.Tags,
	}
	if o.Deprecated {
		op.Deprecation = &Deprecation{Since: date(o.Since), Sunset: date(o.Sunset), Successor: o.Successor}
	}
	for _, raw := range o.Parameters {
		p, err := d.parameter(raw)
		if err != nil {
			return op, fmt.Errorf("parameters: %w", err)
		}
		op.Parameters = append(op.Parameters, p)
	}
	var err error
	if op.Body, err = d.body(o.RequestBody); err != nil {
		return op, fmt.Errorf("requestBody: %w", err)
	}
	for _, m := range o.Responses {
		r, err := d.response(m.Name, m.Value)
		if err != nil {
			return op, fmt.Errorf("responses: %s: %w", m.Name, err)
		}
		op.Responses = append(op.Responses, r)
	}
	return op, nil
}

func (d *document) parameter(raw json.RawMessage) (Parameter, error) {
	p, _, err := resolve[struct {
		Name, In, Description string
		Required              bool
		Schema, Example       json.RawMessage
	}](d, raw)
	if err != nil {
		return Parameter{}, err
	}
	t, s, err := d.typeOf(p.Schema)
	if err != nil {
		return Parameter{}, fmt.Errorf("%s: %w", p.Name, err)
	}
	return Parameter{
		Name: p.Name, In: p.In, Description: p.Description, Required: p.Required,
		Default: plain(s.Default), Example: plain(p.Example), Type: t,
	}, nil
}

func (d *document) body(raw json.RawMessage) (*Body, error) {
	if raw == nil {
		return nil, nil
	}
	b, _, err := resolve[struct {
		Description string
		Content     map[string]mediaType
	}](d, raw)
	if err != nil {
		return nil, err
	}
	media := b.Content["application/json"]
	t, s, err := d.typeOf(media.Schema)
	if err != nil {
		return nil, err
	}
	body := &Body{Description: b.Description, Type: t}
	if body.Properties, err = d.properties(s); err != nil {
		return nil, err
	}
	examples, err := d.examples(media)
	if err != nil {
		return nil, err
	}
	if len(examples) > 0 {
		body.Example = examples[0].Text
	}
	return body, nil
}

// date returns a date such as 2030-12-05 for a reader: "5 December 2030".
func date(text string) string {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return text
	}
	return t.Format("2 January 2006")
}

// link finds what to link to as a successor: the chapter of an operation with its
// path, or a URL.
func (d *Deprecation) link(server string, operations []Operation) {
	path, _, _ := strings.Cut(d.Successor, "?")
	for _, op := range operations {
		if op.Method == http.MethodGet && server+op.Path == path {
			d.SuccessorLink = "#" + op.ID
			return
		}
	}
	if strings.HasPrefix(d.Successor, "https://") {
		d.SuccessorLink = d.Successor
	}
}
