package config

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// A node is a value in a YAML file. It has fewer kinds than YAML: kinds that no
// setting needs are mistakes.
type node struct {
	kind    kind
	text    string // of a scalar
	line    int
	column  int
	members []member // of a group, in the order of the file
	items   []*node  // of a list
}

type kind int

const (
	nothing kind = iota // no value, null, ~
	text                // also what looks like a date
	number
	boolean
	list
	group
	refused // a mistake that is reported already
)

func (k kind) String() string {
	return [...]string{"no value", "text", "a number", "true or false", "a list", "a group"}[k]
}

type member struct {
	name         string
	line, column int
	value        *node
}

// Bounds of a file. The parser's time and memory grow with the square of the depth,
// so a file of brackets could use all memory.
const (
	maxFile  = 512 << 10 // bytes
	maxLine  = 8 << 10   // bytes
	maxDepth = 32        // of brackets and braces, of "- - -", and of spaces that indent, by two
)

// checkBounds returns what is wrong with a file that must not be parsed, and the
// line, 0 for the whole file.
func checkBounds(content []byte) (what string, line int) {
	if len(content) > maxFile {
		return fmt.Sprintf("the file is larger than %d KiB", maxFile>>10), 0
	}
	if !utf8.Valid(content) {
		return "the file is not text in UTF-8", 0
	}
	depth, length, indent := 0, 0, 0
	line = 1
	for _, b := range content {
		length++
		if (b == ' ' || b == '-') && indent == length-1 {
			indent = length
		}
		switch b {
		case '\n':
			line, length, indent = line+1, 0, 0
		case '[', '{':
			// In quotes and comments they count too, and do no harm.
			depth++
		case ']', '}':
			depth = max(depth-1, 0)
		}
		if depth > maxDepth {
			return fmt.Sprintf("brackets are nested deeper than %d", maxDepth), line
		}
		if indent > 2*maxDepth {
			return fmt.Sprintf("the line is indented deeper than %d", 2*maxDepth), line
		}
		if length > maxLine {
			return fmt.Sprintf("the line is longer than %d bytes", maxLine), line
		}
	}
	return "", 0
}

// parseYAML reads a file that consists of one group. An empty file is an empty
// group. Mistakes go to the report. It returns nil if the file cannot be parsed.
func parseYAML(name string, content []byte, r *report) *node {
	whole := place{text: name}
	if what, line := checkBounds(content); what != "" {
		r.add(place{name, line, 1}, "", "%s", what)
		return nil
	}
	// Some editors write a byte order mark.
	content = bytes.TrimPrefix(content, []byte("\ufeff"))

	file, err := parse(content)
	if err != nil {
		at, what := whole, err.Error()
		if e, ok := err.(yaml.Error); ok {
			at, what = placeOf(name, e.GetToken()), e.GetMessage()
		}
		r.add(at, "", "the file is not YAML: %s", what)
		return nil
	}
	var body ast.Node
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil:
		case body == nil:
			body = doc.Body
		default:
			r.add(placeOf(name, doc.Body.GetToken()), "", "a second document begins here; the file must be one document")
			return nil
		}
	}
	if body == nil {
		return &node{kind: group, line: 1, column: 1}
	}
	root := converter{name, r}.convert(body, "")
	if root.kind != group && root.kind != refused {
		r.add(placeOf(name, body.GetToken()), "", `must contain settings such as "listen: 127.0.0.1:8080", one per line`)
		return nil
	}
	return root
}

// parse calls the parser. It returns a panic of the parser on a broken file as an
// error.
func parse(content []byte) (file *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the parser failed: %v", p)
		}
	}()
	// Duplicate members are allowed here because convert reports them with both lines.
	return parser.ParseBytes(content, 0, parser.AllowDuplicateMapKey())
}

func placeOf(name string, t *token.Token) place {
	if t == nil || t.Position == nil {
		return place{text: name}
	}
	return place{name, t.Position.Line, t.Position.Column}
}

// A converter turns the parser's tree into nodes.
type converter struct {
	name string
	*report
}

// refuse reports a mistake. The node that it returns takes the value's place.
func (c converter) refuse(t *token.Token, setting, format string, args ...any) *node {
	c.add(placeOf(c.name, t), setting, format, args...)
	return &node{kind: refused}
}

// convert returns the value of a setting.
func (c converter) convert(from ast.Node, setting string) *node {
	at := placeOf(c.name, from.GetToken())
	n := &node{line: at.line, column: at.column}
	switch from := from.(type) {
	case *ast.NullNode:
	case *ast.BoolNode:
		n.kind, n.text = boolean, from.Token.Value
	case *ast.IntegerNode:
		n.kind, n.text = number, from.Token.Value
	case *ast.FloatNode:
		n.kind, n.text = number, from.Token.Value
	case *ast.InfinityNode, *ast.NanNode:
		n.kind, n.text = number, from.GetToken().Value
	case *ast.StringNode:
		n.kind, n.text = text, from.Value
	case *ast.LiteralNode:
		n.kind, n.text = text, from.Value.Value
	case *ast.SequenceNode:
		n.kind = list
		for i, item := range from.Values {
			n.items = append(n.items, c.convert(item, fmt.Sprintf("%s[%d]", setting, i)))
		}
	case *ast.MappingNode:
		n.kind = group
		c.members(n, from.Values, setting)
		if !from.IsFlowStyle {
			n.beginWithMembers()
		}
	case *ast.MappingValueNode:
		n.kind = group
		c.members(n, []*ast.MappingValueNode{from}, setting)
		n.beginWithMembers()
	case *ast.AnchorNode, *ast.AliasNode:
		return c.refuse(from.GetToken(), setting, "references (& and *) are not supported; write the value itself")
	case *ast.TagNode:
		return c.refuse(from.GetToken(), setting, "types (!) are not supported; remove the type")
	default:
		return c.refuse(from.GetToken(), setting, "this kind of YAML is not supported")
	}
	return n
}

func (c converter) members(n *node, values []*ast.MappingValueNode, setting string) {
	first := map[string]int{} // line
	for _, v := range values {
		key, ok := v.Key.(*ast.StringNode)
		if !ok {
			c.refuse(v.Key.GetToken(), setting, "must have a name before the colon; put a name that is a number or a YAML word in quotes")
			continue
		}
		at := placeOf(c.name, key.Token)
		path := join(setting, key.Value)
		if line, twice := first[key.Value]; twice {
			c.refuse(key.Token, path, "is set twice, first in line %d; remove one", line)
			continue
		}
		first[key.Value] = at.line
		n.members = append(n.members, member{key.Value, at.line, at.column, c.convert(v.Value, path)})
	}
}

// beginWithMembers moves a group without braces from its first colon, where the
// parser has it begin.
func (n *node) beginWithMembers() {
	if len(n.members) > 0 {
		n.line, n.column = n.members[0].line, n.members[0].column
	}
}

// join returns the name of a member of a group.
func join(group, member string) string {
	if group == "" {
		return member
	}
	return group + "." + member
}
