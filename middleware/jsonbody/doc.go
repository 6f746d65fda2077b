// Package jsonbody reads JSON request bodies that are checked against a JSON
// Schema, and gives the handler a Go value that is exactly what was checked.
//
// The schema is compiled once, from a document that may be larger: the OpenAPI
// document of the service, say, so that what is published and what is enforced
// are one.
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
// A body passes one parser, which builds one tree; the schema is applied to that
// tree, and the Go value is filled from it. Nothing is read twice by readers that
// could differ. The parser follows RFC 8259 and is stricter than encoding/json
// where that repairs or guesses in silence:
//
//   - text that is not UTF-8, a byte order mark, and surrogates without a partner
//     are refused (RFC 7493 section 2.1);
//   - so is a member name that occurs twice in an object (RFC 7493 section 2.3),
//     and anything after the value;
//   - member names fit struct fields only if they are equal, also in case;
//   - integers are read by their value, as JSON Schema defines them: 1.0 and 1e2
//     fill an int64, and no digit is lost.
//
// Size, depth, the number of values, the length of numbers and of the path of
// names to a value are limited (RFC 8259 section 9). Validation takes most of the time: a few microseconds for each value with
// common schemas. Within the default limits, the worst body takes less than 100
// milliseconds.
//
// Schemas are of draft 2020-12, which OpenAPI 3.1 uses, with patterns in the
// syntax of package regexp: write \x1f for a control character, which ECMAScript
// understands too, not \u001f. If a schema with a pattern has a title, such as "a
// name without control characters", the error says "must be" and the title, since a
// regular expression says little to the client. As in the draft, format and default
// are annotations: they change nothing. $ref leads only to other parts of the
// document; nothing is loaded from files or the network. $dynamicRef is refused.
package jsonbody
