package docpage

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"path"
	"slices"
	"strings"

	"github.com/animalstore/gatehouse/reference/internal/webpage"
)

// A Page is the content of the page, in the order in which it is read.
type Page struct {
	Title, Version, Summary string
	Server                  string // the path before those of all operations: "/v1"
	Key                     string // how a key is sent
	Intro                   []string
	Tags                    []Tag
	Rules                   []Rule
	Codes                   []Code
	Schemas                 []Schema

	Dir string // of the other files, relative to the page
}

// A Tag is a group of operations.
type Tag struct {
	Name, Description string
	Operations        []Operation
}

// A Rule is a paragraph of the description with the bold words that it begins with.
type Rule struct{ ID, Title, Text string }

// A Code is a code of the errors.
type Code struct {
	Status        int
	Code, Message string
}

// A Schema is the chapter of an object.
type Schema struct {
	Name, Description string
	Properties        []Property
}

// newPage reads an OpenAPI document.
func newPage(data []byte) (*Page, error) {
	d := &document{data, make(map[string]map[string]json.RawMessage), make(map[string]Header)}
	var o struct {
		Info       struct{ Title, Version, Summary, Description string }
		Servers    []struct{ URL string }
		Tags       []struct{ Name, Description string }
		Paths      ordered
		Components struct {
			SecuritySchemes map[string]struct{ Description string }
			Examples        ordered
			Schemas         ordered
		}
	}
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, err
	}
	p := &Page{Title: o.Info.Title, Version: o.Info.Version, Summary: o.Info.Summary}
	p.Intro, p.Rules = rules(o.Info.Description)
	if len(o.Servers) == 0 {
		return nil, errors.New("servers: there is none")
	}
	p.Server = o.Servers[0].URL
	for _, s := range o.Components.SecuritySchemes {
		p.Key = s.Description
	}
	operations, err := d.operations(o.Paths)
	if err != nil {
		return nil, fmt.Errorf("paths: %w", err)
	}
	for _, op := range operations {
		if op.Deprecation != nil {
			op.Deprecation.link(p.Server, operations)
		}
	}
	for _, t := range o.Tags {
		tag := Tag{Name: t.Name, Description: t.Description}
		for _, op := range operations {
			if slices.Contains(op.tags, t.Name) {
				tag.Operations = append(tag.Operations, op)
			}
		}
		p.Tags = append(p.Tags, tag)
	}
	if p.Codes, err = codes(o.Components.Examples); err != nil {
		return nil, fmt.Errorf("components: examples: %w", err)
	}
	if p.Schemas, err = d.schemas(o.Components.Schemas); err != nil {
		return nil, fmt.Errorf("components: schemas: %w", err)
	}
	return p, nil
}

func (d *document) operations(paths ordered) ([]Operation, error) {
	var operations []Operation
	for _, path := range paths {
		var item ordered
		if err := json.Unmarshal(path.Value, &item); err != nil {
			return nil, fmt.Errorf("%s: %w", path.Name, err)
		}
		for _, m := range item {
			if !slices.Contains(methods, m.Name) {
				continue
			}
			op, err := d.operation(m.Name, path.Name, m.Value)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", path.Name, m.Name, err)
			}
			operations = append(operations, op)
		}
	}
	return operations, nil
}

// rules splits a description into its paragraphs. Of CommonMark it knows these and bold
// words at the beginning of one.
func rules(description string) (intro []string, rules []Rule) {
	for paragraph := range strings.SplitSeq(description, "\n\n") {
		bold, isRule := strings.CutPrefix(paragraph, "**")
		title, text, ended := strings.Cut(bold, "**")
		if !isRule || !ended {
			intro = append(intro, paragraph)
			continue
		}
		title = strings.TrimSuffix(title, ".")
		id := strings.ReplaceAll(strings.ToLower(title), " ", "-")
		rules = append(rules, Rule{id, title, strings.TrimSpace(text)})
	}
	return intro, rules
}

// codes returns the codes of the errors among the examples, in the order of their statuses.
func codes(examples ordered) ([]Code, error) {
	var codes []Code
	for _, m := range examples {
		var e struct{ Value Code }
		if err := json.Unmarshal(m.Value, &e); err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		if e.Value.Code != "" {
			codes = append(codes, e.Value)
		}
	}
	slices.SortStableFunc(codes, func(a, b Code) int { return cmp.Compare(a.Status, b.Status) })
	return codes, nil
}

// schemas returns the chapters of the objects.
func (d *document) schemas(all ordered) ([]Schema, error) {
	var chapters []Schema
	for _, m := range all {
		s, _, err := resolve[schema](d, m.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		if len(s.Properties) == 0 {
			continue
		}
		rows, err := d.properties(s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		chapters = append(chapters, Schema{m.Name, s.Description, rows})
	}
	return chapters, nil
}

//go:embed files
var files embed.FS

//go:embed page.html
var source string

// New returns the page for an OpenAPI document and the files that it uses, with the
// page first. at is its path, such as "/docs"; the other files are below it.
func New(document []byte, at string) ([]webpage.File, error) {
	p, err := newPage(document)
	if err != nil {
		return nil, fmt.Errorf("docpage: %w", err)
	}
	p.Dir = path.Base(at)
	t, err := template.New("page").Parse(source)
	if err != nil {
		return nil, fmt.Errorf("docpage: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		return nil, fmt.Errorf("docpage: %w", err)
	}
	others, err := webpage.Files(at, files)
	if err != nil {
		return nil, fmt.Errorf("docpage: %w", err)
	}
	return append([]webpage.File{webpage.HTML(at, b.Bytes())}, others...), nil
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
