package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"
)

// A node is a place in the settings file, or in a variable. Its methods read what is there,
// remember where it is, and report what is wrong.
type node struct {
	*yaml.Node
	path string // of the setting: "plans.free[1]"
	from string // the variable or flag; empty: the file
	r    *reader
}

// at returns the place of n.
func (n node) at() place {
	if n.from != "" {
		return place{text: n.from}
	}
	return place{n.r.file, n.Line, n.Column}
}

// wrong adds a mistake.
func (n node) wrong(format string, args ...any) { n.r.add(n.at(), n.path, format, args...) }

// is reports whether n is of a kind; what describes that kind, with an example.
func (n node) is(kind yaml.Kind, what string) bool {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0:
		n.wrong("references (& and *) and types (!) are not supported; write the value itself")
	case n.ShortTag() == "!!null":
		n.wrong("must be %s, got nothing; to keep the default, remove the line", what)
	case n.Kind == kind:
		return true
	default:
		n.wrong("must be %s, got %s", what, map[yaml.Kind]string{
			yaml.ScalarNode: "a single value", yaml.SequenceNode: "a list", yaml.MappingNode: "a group",
		}[n.Kind])
	}
	return false
}

// text returns the text of a single value, which can also be a number or a date.
func (n node) text() (text string, ok bool) {
	return n.Value, n.is(yaml.ScalarNode, "a single value")
}

// items returns the items of a list.
func (n node) items(what string) []node {
	if !n.is(yaml.SequenceNode, what) {
		return nil
	}
	items := make([]node, len(n.Content))
	for i, item := range n.Content {
		items[i] = n.inner(fmt.Sprintf("%s[%d]", n.path, i), item)
	}
	return items
}

// A member is a setting, or a group of them, in a group.
type member struct {
	node        // its value
	name string // without the names of its groups
	key  node
}

// members returns the members of a group.
func (n node) members(what string) []member {
	if !n.is(yaml.MappingNode, what) {
		return nil
	}
	var members []member
	first := map[string]int{} // line
	for pair := range slices.Chunk(n.Content, 2) {
		key := node{pair[0], n.path, n.from, n.r}
		if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" {
			key.wrong("must have a name before the colon; put a name that is a number or a YAML word in quotes")
			continue
		}
		key.path = join(n.path, key.Value)
		if line, twice := first[key.Value]; twice {
			key.wrong("is set twice, first in line %d; remove one", line)
			continue
		}
		first[key.Value] = key.Line
		members = append(members, member{n.inner(key.path, pair[1]), key.Value, key})
	}
	return members
}

// group reads each member of a group.
func (n node) group(what string, read map[string]value) {
	for _, m := range n.members(what) {
		if v, ok := read[m.name]; ok {
			v.read(m.node)
		} else {
			m.unknown()
		}
	}
}

// inner returns a node in n, and remembers its place.
func (n node) inner(path string, inner *yaml.Node) node {
	in := node{inner, path, n.from, n.r}
	n.r.c.places[path] = in.at()
	return in
}

// unknown adds the mistake that there is no such setting.
func (m member) unknown() { m.key.wrong("unknown setting; reference/docs/CONFIGURATION.md lists all") }

// join returns the name of a member of a group.
func join(group, member string) string {
	if group == "" {
		return member
	}
	return group + "." + member
}

// maxFile bounds the settings file, in bytes.
const maxFile = 512 << 10

// parseYAML returns what is in the settings file or in a variable. There may be nothing.
func (r *reader) parseYAML(content []byte, path, from string) (n node, ok bool) {
	nothing := node{&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}, path, from, r}
	whole := place{text: cmp.Or(from, r.file)}
	var documents []yaml.Node
	err := yaml.Load(content, &documents, yaml.WithAllDocuments())
	switch {
	case err == nil && len(documents) == 0:
		return nothing, true
	case err == nil && len(documents) == 1:
		return node{documents[0].Content[0], path, from, r}, true
	case err == nil:
		node{documents[1].Content[0], path, from, r}.wrong("a second document begins here; the file must be one document")
		return nothing, false
	}
	at, what := whole, err.Error()
	if e, ok := errors.AsType[*yaml.LoadError](err); ok {
		what = e.Message
		for _, mark := range []yaml.Mark{e.Mark, e.ContextMark} { // the beginning, if it is known
			if mark.Line > 0 && from == "" {
				at = place{r.file, mark.Line, mark.Column}
			}
		}
	}
	r.add(at, path, "this is not YAML: %s", what)
	return nothing, false
}
