// Package jsonbody reads JSON request bodies and checks them against a JSON Schema:
//
//	newPet, err := jsonbody.New[NewPet](openAPI, "#/components/schemas/NewPet", jsonbody.Options{})
//	...
//	func createPet(w http.ResponseWriter, r *http.Request) error {
//		pet, err := newPet.Decode(w, r)
//		if err != nil {
//			return err // an *apierror.Error: 400, 413 or 415
//		}
//		...
//	}
//
// The schema is compiled once, from a document that may contain more, such as the
// OpenAPI document of the service: the published schema is then the enforced one.
//
// A body is parsed once. The schema is applied to the parsed tree, and the Go value is
// set from the same tree, so that the handler gets exactly what was checked. The parser
// follows RFC 8259 and, unlike encoding/json, never repairs or guesses:
//
//   - it refuses text that is not UTF-8, a byte order mark, unpaired surrogates
//     (RFC 7493 section 2.1), member names that occur twice in an object (section 2.3),
//     and data after the value;
//   - member names match struct fields only if they are equal, also in case;
//   - integers are read by value, as JSON Schema defines them: 1.0 and 1e2 fit an int64,
//     and no digit is lost.
//
// Size, depth, the number of values, the length of numbers and of the path to a value are
// limited (RFC 8259 section 9). With the default limits, the worst body takes less than
// 100 milliseconds with a schema such as that of BenchmarkHostile, without the time of
// methods of the service's own types, such as UnmarshalText.
//
// Two kinds of schemas take longer. A pattern that counts far, such as [a-z]{500}x, can take
// half a second for a long string. Alternatives (anyOf, oneOf) that recurse into the same
// member, such as args of {"op": "and", "args": [...]} and of {"op": "or", "args": [...]},
// multiply the work on each level, since all of them are tried: 5 kB then take seconds.
// Choose the alternative by if and then, or lower Options.MaxDepth. [Body] says which
// schemas are supported, and [New] which types.
package jsonbody
