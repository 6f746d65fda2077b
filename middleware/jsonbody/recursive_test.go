package jsonbody_test

import "testing"

type (
	Node struct {
		Value int
		Next  *Node
		Kids  []Node
		Named map[string]Node
	}
	even struct{ Odd *odd }
	odd  struct{ Even []even }
	list []list
	tree map[string]tree
	self *self
	ring **ring
)

func TestRecursiveTypes(t *testing.T) {
	const (
		node = `{"type":"object","properties":{
			"Value":{"type":"integer"}, "Next":{"$ref":"#"}, "Kids":{"items":{"$ref":"#"}}, "Named":{"additionalProperties":{"$ref":"#"}}
		}}`
		twice = `{"properties":{"Odd":{"properties":{"Even":{"items":{"$ref":"#"}}}}}}`
	)
	run(t, []rule{
		{"pointer", reads(node, `{"Next":{"Value":1,"Next":{"Value":2}}}`, Node{Next: &Node{Value: 1, Next: &Node{Value: 2}}})},
		{"slice", reads(node, `{"Kids":[{"Kids":[{"Value":1}]},{"Kids":[]}]}`, Node{Kids: []Node{{Kids: []Node{{Value: 1}}}, {Kids: []Node{}}}})},
		{"map", reads(node, `{"Named":{"a":{"Named":{"b":{"Value":1}}}}}`, Node{Named: map[string]Node{"a": {Named: map[string]Node{"b": {Value: 1}}}}})},
		{"two types", reads(twice, `{"Odd":{"Even":[{"Odd":{"Even":null}}]}}`, even{&odd{[]even{{&odd{}}}}})},
		{"wrong value inside", refuses[Node](node, `{"Kids":[{"Next":{"Named":{"a":{"Value":1.5}}}}]}`, "/Kids/0/Next/Named/a/Value", "must be an integer")},
		{"schema that ends", newRefuses[even](`{"properties":{"Odd":{"properties":{"Even":{"items":{}}}}}}`, `field Odd: field Even: field Odd: the schema does not describe a member "Odd"`)},
		{"schema with other values inside", newRefuses[Node](`{"properties":{"Value":{},"Kids":{},"Named":{},"Next":{"properties":{
			"Value":{"type":"string"},"Next":{},"Kids":{},"Named":{}}}}}`, "field Next: field Value: type int cannot hold")},
		{"slices alone", reads(`{"items":{"$ref":"#"}}`, `[[],[[]],null]`, list{{}, {{}}, nil})},
		{"maps alone", reads(`{}`, `{"a":{"b":{}},"c":null}`, tree{"a": {"b": {}}, "c": nil})},
		{"pointers alone", newRefuses[self](`{}`, "type jsonbody_test.self points only to itself")},
		{"pointers to pointers", newRefuses[struct{ A ring }](anyA, "type jsonbody_test.ring points only to itself")},
	})
}
