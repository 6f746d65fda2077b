package jsonbody

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// problems converts a violation to problems. The texts of the validator are not used:
// they contain values of the body and the URL of the schema.
func (s *schema) problems(violation *jsonschema.ValidationError, tree any) []problem {
	c := collector{schema: s, tree: tree}
	c.collect(violation, false)
	for i := range c.found {
		c.found[i].pointer = truncatePointer(c.found[i].pointer)
	}
	// The validator walks maps, in a different order each time.
	slices.SortFunc(c.found, func(a, b problem) int {
		return cmp.Or(strings.Compare(a.pointer, b.pointer), strings.Compare(a.detail, b.detail))
	})
	return slices.Compact(c.found)
}

type collector struct {
	schema *schema
	tree   any
	found  []problem
}

// collect descends to the violations without further causes. With aboutName they are
// about the name of a member rather than its value.
func (c *collector) collect(v *jsonschema.ValidationError, aboutName bool) {
	js, keyword := c.schema.at(v.AbsoluteKeywordLocation)
	aboutName = aboutName || c.schema.nameSchemas[js]
	causes := v.Causes
	switch keyword {
	case "anyOf", "oneOf":
		causes = relevantCauses(v)
	case "minContains":
		causes = nil // why each item does not match
	}
	for _, cause := range causes {
		c.collect(cause, aboutName)
	}
	if len(causes) > 0 {
		return
	}
	pointer := instancePointer(v.InstanceLocation)
	switch name, _, _ := strings.Cut(keyword, "/"); {
	case aboutName:
		c.add(pointer, "has a name that is not allowed")
	case name == "required":
		c.addMissing(pointer, js.Required)
	case name == "additionalProperties":
		c.addUnknown(pointer, js)
	case name == "dependentRequired" || name == "dependencies":
		c.addMissing(pointer, dependents(js, keyword))
	default:
		c.add(pointer, requirement(js, keyword))
	}
}

func (c *collector) add(pointer, detail string) {
	c.found = append(c.found, problem{pointer: pointer, detail: detail})
}

func (c *collector) addMissing(pointer string, names []string) {
	object, _ := lookup(c.tree, pointer).(map[string]any)
	for _, name := range names {
		if _, ok := object[name]; !ok {
			c.add(pointer+"/"+escapePointer(name), "is required")
		}
	}
}

func (c *collector) addUnknown(pointer string, js *jsonschema.Schema) {
	object, _ := lookup(c.tree, pointer).(map[string]any)
	for name := range object {
		if len(memberSchemas(js, name)) == 0 {
			c.add(pointer+"/"+escapePointer(name), "is not allowed")
		}
	}
}

// relevantCauses returns the causes of a failed anyOf or oneOf that help the client: those
// of the alternative that accepts the type of the value, if there is exactly one.
func relevantCauses(v *jsonschema.ValidationError) []*jsonschema.ValidationError {
	var rest []*jsonschema.ValidationError
	for _, cause := range v.Causes {
		leaf := cause
		for len(leaf.Causes) == 1 {
			leaf = leaf.Causes[0]
		}
		wrongType := leaf.InstanceLocation == v.InstanceLocation &&
			strings.HasSuffix(leaf.KeywordLocation, "/type") && len(leaf.Causes) == 0
		if !wrongType {
			rest = append(rest, cause)
		}
	}
	if len(rest) != 1 {
		return nil
	}
	return rest
}

// dependents returns the names that a keyword such as dependentRequired/b requires.
func dependents(js *jsonschema.Schema, keyword string) []string {
	tokens := strings.Split(keyword, "/")
	if len(tokens) < 2 {
		return nil
	}
	name := unescapePointer(unescapePath(tokens[1]))
	if names, ok := js.DependentRequired[name]; ok {
		return names
	}
	names, _ := js.Dependencies[name].([]string)
	return names
}

// at splits the location of a keyword into the schema and the keyword, which is ""
// if the schema itself is false.
func (s *schema) at(location string) (js *jsonschema.Schema, keyword string) {
	for end := len(location); end > 0; end = strings.LastIndexByte(location[:end], '/') {
		if js, ok := s.byLocation[location[:end]]; ok {
			keyword = strings.TrimPrefix(location[end:], "/")
			if keyword == "" && (js.Always == nil || *js.Always) {
				continue // not and contains name their own value
			}
			return js, keyword
		}
	}
	return s.root, ""
}

// instancePointer converts a location of the validator, which is percent-encoded, to a
// JSON Pointer.
func instancePointer(location string) string {
	tokens := strings.Split(location, "/")
	for i, t := range tokens {
		tokens[i] = unescapePath(t)
	}
	return strings.Join(tokens, "/")
}

func unescapePath(token string) string {
	if s, err := url.PathUnescape(token); err == nil {
		return s
	}
	return token
}

// lookup returns the value at a pointer into the tree.
func lookup(v any, pointer string) any {
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		switch parent := v.(type) {
		case map[string]any:
			v = parent[unescapePointer(token)]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(parent) {
				return nil
			}
			v = parent[i]
		default:
			return nil
		}
	}
	return v
}

// problem is one fault of a body.
type problem struct {
	pointer string // where: a JSON Pointer (RFC 6901); "" is the whole body
	detail  string // what: the rest of a sentence about that place
	whole   bool   // the fault is of the text, not of a value in it
}

// maxPointer is how many bytes of member names that a client invented are sent back.
const maxPointer = 256

// within prefixes the pointer of p with a member or an element. It is called on the way
// out of nested values, so that only invalid values pay for their pointers.
func (p *problem) within(token string) *problem {
	if p.whole {
		return p
	}
	p.pointer = "/" + escapePointer(token) + p.pointer
	return p
}

// truncatePointer shortens a pointer that is too long to that of an outer value.
func truncatePointer(pointer string) string {
	for len(pointer) > maxPointer {
		pointer = pointer[:strings.LastIndexByte(pointer, '/')]
	}
	return pointer
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

func escapePointer(token string) string { return pointerEscaper.Replace(token) }

var pointerUnescaper = strings.NewReplacer("~1", "/", "~0", "~")

func unescapePointer(token string) string { return pointerUnescaper.Replace(token) }
