package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// maxFile bounds the settings file, in bytes.
const maxFile = 512 << 10

// A decoder sets a Config from the settings file.
type decoder struct {
	*report
	file string
	c    *Config
}

// decode sets everything in the file. An empty file sets nothing.
func (d *decoder) decode(content []byte) {
	nodes := d.settings(d.parse(content))
	read := func(penalty bool) {
		for _, s := range settings {
			if n := nodes[s.name]; n != nil && strings.HasPrefix(s.name, "penalty.") == penalty {
				s.read(d, n, s.name)
			}
		}
	}
	before := len(d.mistakes)
	read(true) // plans contain the penalty
	d.checkPenalty(len(d.mistakes) > before)
	d.c.setDefaultPlans()
	read(false)
}

// settings returns the values of the settings in the file, by the names of the settings.
func (d *decoder) settings(root *yaml.Node) map[string]*yaml.Node {
	members := map[string][]string{} // of each group; of "", all that stand alone, and the groups
	for _, s := range settings {
		group, member, grouped := strings.Cut(s.name, ".")
		if grouped {
			members[group] = append(members[group], member)
		} else {
			members[""] = append(members[""], s.name)
		}
	}
	members[""] = slices.AppendSeq(members[""], maps.Keys(groups))

	nodes := map[string]*yaml.Node{}
	for _, m := range d.members(root, "", members[""]) {
		example, isGroup := groups[m.name]
		if !isGroup {
			nodes[m.name] = m.value
			continue
		}
		if d.is(m.value, m.name, group, "a group such as "+example) {
			for _, inner := range d.members(m.value, m.name, members[m.name]) {
				nodes[inner.path] = inner.value
			}
		}
	}
	return nodes
}

// parse returns the group of which the file consists, or nil if it has none.
func (d *decoder) parse(content []byte) *yaml.Node {
	whole := place{text: d.file}
	switch {
	case len(content) > maxFile:
		d.add(whole, "", "the file is larger than %d KiB", maxFile>>10)
		return nil
	case !utf8.Valid(content):
		d.add(whole, "", "the file is not text in UTF-8")
		return nil
	}
	var body *yaml.Node
	loader, err := yaml.NewLoader(bytes.NewReader(content))
	for err == nil {
		var document yaml.Node
		if err = loader.Load(&document); err != nil || kindOf(document.Content[0]) == nothing {
			continue
		}
		if body != nil {
			d.add(d.at(document.Content[0]), "", "a second document begins here; the file must be one document")
			return nil
		}
		body = document.Content[0]
	}
	if err != io.EOF {
		at, what := whole, err.Error()
		if e, ok := errors.AsType[*yaml.LoadError](err); ok {
			what = e.Message
			for _, mark := range []yaml.Mark{e.Mark, e.ContextMark} { // the beginning, if it is known
				if mark.Line > 0 {
					at = place{d.file, mark.Line, mark.Column}
				}
			}
		}
		d.add(at, "", "the file is not YAML: %s", what)
		return nil
	}
	if body != nil && kindOf(body) != group {
		d.add(d.at(body), "", `must contain settings such as "listen: 127.0.0.1:8080", one per line`)
		return nil
	}
	return body
}

func (d *decoder) at(n *yaml.Node) place { return place{d.file, n.Line, n.Column} }

// A kind is what a setting distinguishes of the values of YAML.
type kind string

const (
	nothing kind = "nothing" // no value, null, ~
	text    kind = "text"    // also what looks like a date
	number  kind = "a number"
	boolean kind = "true or false"
	aList   kind = "a list"
	group   kind = "a group"
)

func kindOf(n *yaml.Node) kind {
	switch n.ShortTag() {
	case "!!null":
		return nothing
	case "!!int", "!!float":
		return number
	case "!!bool":
		return boolean
	case "!!seq":
		return aList
	case "!!map":
		return group
	}
	return text
}

// is reports whether a value is of the wanted kind. If not, it adds a mistake.
func (d *decoder) is(n *yaml.Node, setting string, want kind, example string) bool {
	got := kindOf(n)
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		d.add(d.at(n), setting, "references (& and *) are not supported; write the value itself")
	case n.Style&yaml.TaggedStyle != 0:
		d.add(d.at(n), setting, "types (!) are not supported; remove the type")
	case got == want:
		return true
	case got == nothing:
		d.add(d.at(n), setting, "must be %s, got nothing; to keep the default, remove the line", example)
	case want == text && strings.HasPrefix(example, "text") && (got == number || got == boolean):
		d.add(d.at(n), setting, "must be %s, got %v; put it in quotes to make it text", example, got)
	default:
		d.add(d.at(n), setting, "must be %s, got %v", example, got)
	}
	return false
}

// A member is one of a group.
type member struct {
	name, path string // without and with the names of its groups
	at         place  // of the name
	value      *yaml.Node
}

// members returns the members of a group, and records where each was set. Members that are
// not known are mistakes, if there is a list of the known ones.
func (d *decoder) members(n *yaml.Node, setting string, known []string) (all []member) {
	if n == nil {
		return nil
	}
	first := map[string]int{} // line
	for pair := range slices.Chunk(n.Content, 2) {
		key, value := pair[0], pair[1]
		if kindOf(key) != text || key.ShortTag() == "!!merge" || key.Kind == yaml.AliasNode {
			d.add(d.at(key), setting, "must have a name before the colon; put a name that is a number or a YAML word in quotes")
			continue
		}
		m := member{key.Value, join(setting, key.Value), d.at(key), value}
		line, twice := first[m.name]
		switch {
		case twice:
			d.add(m.at, m.path, "is set twice, first in line %d; remove one", line)
			continue
		case known != nil && !slices.Contains(known, m.name):
			d.unknown(m, known)
		default:
			d.c.places[m.path] = d.at(value)
			all = append(all, m)
		}
		first[m.name] = m.at.line
	}
	return all
}

func (d *decoder) unknown(m member, known []string) {
	advice := ""
	if len(d.mistakes) < maxMistakes { // the others are only counted, and many suggestions take long
		known = slices.Sorted(slices.Values(known))
		if advice = didYouMean(m.name, known); advice == "" {
			advice = " known here are " + strings.Join(known, ", ")
		}
	}
	d.add(m.at, m.path, "unknown setting;%s", advice)
}

// join returns the name of a member of a group.
func join(group, member string) string {
	if group == "" {
		return member
	}
	return group + "." + member
}

// blame adds a mistake that another package has found in a member of a group.
func (d *decoder) blame(group, member, what string) {
	path := join(group, member)
	if at, set := d.c.places[path]; set {
		d.add(at, path, "%s", what)
		return
	}
	d.add(d.c.places[group], group, "%s %s", member, what)
}

// texts returns the items of a list of text. Items of other kinds are mistakes.
func (d *decoder) texts(n *yaml.Node, setting, example string) []*yaml.Node {
	if !d.is(n, setting, aList, example) {
		return nil
	}
	for i, item := range n.Content {
		path := fmt.Sprintf("%s[%d]", setting, i)
		d.c.places[path] = d.at(item)
		if !d.is(item, path, text, "text in "+example) {
			return nil
		}
	}
	return n.Content
}
