package pages

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed docs.html
var docsTemplate string

// Docs returns the page for an OpenAPI document, and the files that it uses. at is its
// path, such as "/docs"; the other files are below it.
func Docs(document []byte, at string) ([]File, error) {
	p, err := newDocs(document)
	if err != nil {
		return nil, fmt.Errorf("pages: %w", err)
	}
	p.Dir = path.Base(at)
	t, err := template.New("page").Parse(docsTemplate)
	if err != nil {
		return nil, fmt.Errorf("pages: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		return nil, fmt.Errorf("pages: %w", err)
	}
	return withFiles(at, b.Bytes(), at, "docs")
}

// docs is the content of the page, in the order in which it is read.
type docs struct {
	Title, Version, Summary string
	Server                  string // the path before those of all operations: "/v1"
	Key                     string // how a key is sent
	Intro                   []string
	Tags                    []tag
	Rules                   []rule
	Codes                   []code
	Schemas                 []schemaChapter

	Dir string // of the other files, relative to the page
}

// A tag is a group of operations.
type tag struct {
	Name, Description string
	Operations        []operation
}

// A rule is a paragraph of the description with the bold words that it begins with.
type rule struct{ ID, Title, Text string }

// A code is a code of the errors.
type code struct {
	Status        int
	Code, Message string
}

// A schemaChapter is the chapter of an object.
type schemaChapter struct {
	Name, Description string
	Properties        []property
}

// An operation is a chapter of the page.
type operation struct {
	ID, Method, Path     string // Path has no server
	Summary, Description string
	Deprecation          *deprecated
	Parameters           []parameter
	Body                 *body
	Responses            []response

	tags []string
}

// deprecated says since when and until when, as dates such as "5 December 2030".
type deprecated struct {
	Since, Sunset string // "" if not given
	Successor     string
	SuccessorLink string // "" if it is not known what to link to
}

// A parameter is an input field of the form, too.
type parameter struct {
	Name, In, Description, Default, Example string
	Type                                    valueType
	Required                                bool
}

// Hint is what an empty field shows.
func (p parameter) Hint() string {
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
func (p parameter) Numeric() bool { return strings.HasPrefix(p.Type.Text, "integer") }

// A body is the body of a request.
type body struct {
	Description, Example string
	Type                 valueType
	Properties           []property
}

// A response is one response of an operation.
type response struct {
	Status      string // "200", or "Other errors" for all that are not listed
	Phrase      string // "OK"; empty for other errors
	Class       string // good, warn or bad, for its colour
	Description string
	Type        *valueType // of the body; nil: it has none
	Headers     []header
	Examples    []example
}

// A header is a header field of a response.
type header struct{ Name, Description, Example string }

// An example is a body.
type example struct{ Name, Text string }

// newDocs reads an OpenAPI document.
func newDocs(data []byte) (*docs, error) {
	var o struct {
		Info       struct{ Title, Version, Summary, Description string }
		Servers    []struct{ URL string }
		Tags       []struct{ Name, Description string }
		Paths      ordered
		Components struct {
			SecuritySchemes   map[string]struct{ Description string }
			Examples, Schemas ordered
		}
	}
	d := new(document)
	if err := errors.Join(json.Unmarshal(data, &o), json.Unmarshal(data, d)); err != nil {
		return nil, err
	}
	if len(o.Servers) == 0 {
		return nil, errors.New("servers: there is none")
	}
	p := &docs{Title: o.Info.Title, Version: o.Info.Version, Summary: o.Info.Summary, Server: o.Servers[0].URL}
	p.Intro, p.Rules = rules(o.Info.Description)
	for _, s := range o.Components.SecuritySchemes {
		p.Key = s.Description
	}
	operations := d.operations(o.Paths)
	for _, op := range operations {
		if op.Deprecation != nil {
			op.Deprecation.link(p.Server, operations)
		}
	}
	for _, t := range o.Tags {
		chapter := tag{Name: t.Name, Description: t.Description}
		for _, op := range operations {
			if slices.Contains(op.tags, t.Name) {
				chapter.Operations = append(chapter.Operations, op)
			}
		}
		p.Tags = append(p.Tags, chapter)
	}
	p.Codes = d.codes(o.Components.Examples)
	for _, m := range o.Components.Schemas {
		if s, _ := resolve[schema](d, m.Value); len(s.Properties) > 0 {
			p.Schemas = append(p.Schemas, schemaChapter{m.Name, s.Description, d.properties(s)})
		}
	}
	return p, d.err
}

// rules splits a description into its paragraphs. Of CommonMark it knows these and bold
// words at the beginning of one.
func rules(description string) (intro []string, rules []rule) {
	for paragraph := range strings.SplitSeq(description, "\n\n") {
		bold, isRule := strings.CutPrefix(paragraph, "**")
		title, text, ended := strings.Cut(bold, "**")
		if !isRule || !ended {
			intro = append(intro, paragraph)
			continue
		}
		title = strings.TrimSuffix(title, ".")
		id := strings.ReplaceAll(strings.ToLower(title), " ", "-")
		rules = append(rules, rule{id, title, strings.TrimSpace(text)})
	}
	return intro, rules
}

// codes returns the codes of the errors among the examples, in the order of their statuses.
func (d *document) codes(examples ordered) []code {
	var codes []code
	for _, m := range examples {
		if e, _ := resolve[struct{ Value code }](d, m.Value); e.Value.Code != "" {
			codes = append(codes, e.Value)
		}
	}
	slices.SortStableFunc(codes, func(a, b code) int { return cmp.Compare(a.Status, b.Status) })
	return codes
}

// methods are the members of a path item that are operations.
var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}

func (d *document) operations(paths ordered) []operation {
	var operations []operation
	for _, path := range paths {
		item, _ := resolve[ordered](d, path.Value)
		for _, m := range item {
			if slices.Contains(methods, m.Name) {
				operations = append(operations, d.operation(m.Name, path.Name, m.Value))
			}
		}
	}
	return operations
}

func (d *document) operation(method, path string, raw json.RawMessage) operation {
	o, _ := resolve[struct {
		OperationID, Summary, Description string
		Tags                              []string
		Deprecated                        bool
		Since                             string `json:"x-deprecated-since"`
		Sunset                            string `json:"x-sunset"`
		Successor                         string `json:"x-successor"`
		Parameters                        []json.RawMessage
		RequestBody                       json.RawMessage
		Responses                         ordered
	}](d, raw)
	op := operation{
		ID: o.OperationID, Method: strings.ToUpper(method), Path: path,
		Summary: o.Summary, Description: o.Description, tags: o.Tags,
	}
	if o.Deprecated {
		op.Deprecation = &deprecated{Since: date(o.Since), Sunset: date(o.Sunset), Successor: o.Successor}
	}
	for _, raw := range o.Parameters {
		op.Parameters = append(op.Parameters, d.parameter(raw))
	}
	if o.RequestBody != nil {
		op.Body = d.body(o.RequestBody)
	}
	for _, m := range o.Responses {
		op.Responses = append(op.Responses, d.response(m.Name, m.Value))
	}
	return op
}

func (d *document) parameter(raw json.RawMessage) parameter {
	p, _ := resolve[struct {
		Name, In, Description string
		Required              bool
		Schema, Example       json.RawMessage
	}](d, raw)
	t, s := d.typeOf(p.Schema)
	return parameter{
		Name: p.Name, In: p.In, Description: p.Description, Required: p.Required,
		Default: plain(s.Default), Example: plain(p.Example), Type: t,
	}
}

// A content is the body of a request or of a response, by its media type.
type content map[string]struct {
	Schema   json.RawMessage
	Examples ordered
}

func (d *document) body(raw json.RawMessage) *body {
	b, _ := resolve[struct {
		Description string
		Content     content
	}](d, raw)
	t, s := d.typeOf(b.Content["application/json"].Schema)
	request := &body{Description: b.Description, Type: t, Properties: d.properties(s)}
	for _, e := range d.examples(b.Content) {
		request.Example = cmp.Or(request.Example, e.Text)
	}
	return request
}

func (d *document) response(status string, raw json.RawMessage) response {
	r, _ := resolve[struct {
		Description string
		Headers     ordered
		Content     content
	}](d, raw)
	answer := response{Status: "Other errors", Class: "bad", Description: r.Description, Examples: d.examples(r.Content)}
	if code, err := strconv.Atoi(status); err == nil {
		answer.Status, answer.Phrase, answer.Class = status, http.StatusText(code), class(code)
	}
	for _, m := range r.Headers {
		h, _ := resolve[struct {
			Description string
			Example     json.RawMessage
		}](d, m.Value)
		answer.Headers = append(answer.Headers, header{m.Name, h.Description, plain(h.Example)})
	}
	if media, ok := r.Content["application/json"]; ok {
		t, _ := d.typeOf(media.Schema)
		answer.Type = &t
	}
	return answer
}

func class(status int) string {
	switch {
	case status < 400:
		return "good"
	case status == http.StatusTooManyRequests:
		return "warn"
	default:
		return "bad"
	}
}

func (d *document) examples(c content) []example {
	var examples []example
	for _, m := range c["application/json"].Examples {
		e, _ := resolve[struct{ Value json.RawMessage }](d, m.Value)
		var lines bytes.Buffer
		d.check(json.Indent(&lines, e.Value, "", "  "))
		examples = append(examples, example{m.Name, lines.String()})
	}
	return examples
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
func (d *deprecated) link(server string, operations []operation) {
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
