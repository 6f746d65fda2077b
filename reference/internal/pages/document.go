package pages

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// A document is what the page shows of an OpenAPI document.
type document struct {
	Info       struct{ Title, Version, Summary, Description string }
	Servers    []struct{ URL string } // the path before those of all operations: "/v1"
	Tags       []*tag
	Paths      object[object[*operation]] // by path and method
	Components struct {
		SecuritySchemes object[struct{ Description string }]
		Examples        object[struct {
			Value struct{ Status, Code, Message text }
		}] // of errors
		Schemas object[*schema]
	}

	Intro []string // the paragraphs of the description, and those that begin with bold words
	Rules []rule
}

// A tag is a group of operations.
type tag struct {
	Name       string
	Operations []*operation `json:"-"`
}

// A rule is a paragraph of the description with the bold words that it begins with.
type rule struct{ ID, Title, Text string }

// An operation is a chapter of the page.
type operation struct {
	ID                   string `json:"operationId"`
	Tags                 []string
	Summary, Description string
	Deprecated           bool
	Since                string `json:"x-deprecated-since"`
	Sunset               string `json:"x-sunset"`
	Successor            string `json:"x-successor"`
	Parameters           []parameter
	RequestBody          *body
	Responses            object[response] // by status, or default

	Method        string `json:"-"`
	Path          string `json:"-"` // without the server
	SuccessorLink string `json:"-"` // "" if it is not known what to link to
}

// A parameter is an input field of the form, too. A property of an object has no In.
type parameter struct {
	Name, In, Description string
	Required              bool
	Schema                *schema
	Example               text
}

// A body is the body of a request or of a response, by its media type.
type body struct {
	Description string
	Content     map[string]*media
}

// JSON returns the body in JSON, or nil if there is none.
func (b *body) JSON() *media { return b.Content["application/json"] }

type media struct {
	Schema   *schema
	Examples object[struct{ Value indented }]
}

type response struct {
	body
	Headers object[struct {
		Description string
		Example     text
	}]
}

// read reads an OpenAPI document.
func read(data []byte) (*document, error) {
	data, err := resolve(data)
	if err != nil {
		return nil, err
	}
	d := new(document)
	if err := json.Unmarshal(data, d); err != nil {
		return nil, err
	}
	if len(d.Servers) == 0 {
		return nil, errors.New("servers: there is none")
	}
	d.Intro, d.Rules = rules(d.Info.Description)
	for _, path := range d.Paths {
		for _, method := range path.Value {
			op := method.Value
			op.Method, op.Path, op.SuccessorLink = strings.ToUpper(method.Name), path.Name, d.link(op.Successor)
			for _, t := range d.Tags {
				if slices.Contains(op.Tags, t.Name) {
					t.Operations = append(t.Operations, op)
				}
			}
		}
	}
	return d, nil
}

// link returns what to link to as a successor: the chapter of an operation with its path, a
// URL, or "".
func (d *document) link(successor string) string {
	target, _, _ := strings.Cut(successor, "?")
	for _, path := range d.Paths {
		for _, method := range path.Value {
			if method.Name == "get" && d.Servers[0].URL+path.Name == target {
				return "#" + method.Value.ID
			}
		}
	}
	if strings.HasPrefix(successor, "https://") {
		return successor
	}
	return ""
}

// rules splits a description into its paragraphs. The only CommonMark that it knows are
// paragraphs, and bold words at the beginning of one.
func rules(description string) (intro []string, rules []rule) {
	for paragraph := range strings.SplitSeq(description, "\n\n") {
		bold, isRule := strings.CutPrefix(paragraph, "**")
		title, text, ended := strings.Cut(bold, "**")
		if !isRule || !ended {
			intro = append(intro, paragraph)
			continue
		}
		title = strings.TrimSuffix(title, ".")
		rules = append(rules, rule{strings.ReplaceAll(strings.ToLower(title), " ", "-"), title, strings.TrimSpace(text)})
	}
	return intro, rules
}

// A text is a JSON value as a reader sees it: a string without its quotes.
type text string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *text) UnmarshalJSON(value []byte) error {
	if json.Unmarshal(value, (*string)(t)) != nil {
		*t = text(value)
	}
	return nil
}

// An indented is a JSON value in lines.
type indented string

// UnmarshalJSON implements [json.Unmarshaler].
func (i *indented) UnmarshalJSON(value []byte) error {
	var lines bytes.Buffer
	err := json.Indent(&lines, value, "", "  ")
	*i = indented(lines.String())
	return err
}
