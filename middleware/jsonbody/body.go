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
// 100 milliseconds with a schema such as the one of BenchmarkHostile. The time of methods
// of the service's own types, such as UnmarshalText, comes on top.
//
// Two kinds of schemas take longer. A pattern that counts far, such as [a-z]{500}x, can take
// half a second for a long string. Alternatives (anyOf, oneOf) that recurse into the same
// member multiply the work on each level, since all of them are tried. Choose the alternative
// by if and then, or lower Options.MaxDepth.
package jsonbody

import (
	"cmp"
	"fmt"
	"mime"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/animalstore/gatehouse/apierror"
)

// Options are optional settings of [New]. The zero value works.
type Options struct {
	// MaxBytes is the size of the largest body, up to 1 GiB. 0: 64 KiB.
	MaxBytes int64
	// MaxDepth is the largest depth of nested objects and arrays, from 1 to 1000.
	// 0: 16.
	MaxDepth int
	// MaxValues is the largest number of values in a body: objects, arrays, strings,
	// numbers, booleans and nulls. It bounds the time for the schema, which is a few
	// microseconds per value. 0: 2,500.
	MaxValues int
	// MediaTypes are accepted in Content-Type. Nil: application/json. Types such as
	// application/merge-patch+json are JSON with a meaning of their own, and are
	// accepted only if they are listed.
	MediaTypes []string
}

// Body reads bodies of one schema into values of type T. It is safe for concurrent
// use.
//
// Schemas are of draft 2020-12, which OpenAPI 3.1 uses, with patterns in the syntax of package
// regexp: write \x1f for a control character, which ECMAScript understands too, not \u001f. If
// a schema with a pattern has a title, such as "a name without control characters", the error
// says "must be" and the title. A regular expression says little to a client. As in the draft,
// format and default are annotations: they have no effect. $ref refers only to other parts of
// the document. Nothing is loaded from files or the network. $dynamicRef and dependencies are
// refused.
type Body[T any] struct {
	options Options
	schema  *schema
	set     setter
}

// New returns a Body that reads bodies into T.
//
// The document is JSON: a schema, or a document that contains schemas. The reference
// selects the schema, as $ref would inside the document: "#/components/schemas/NewPet",
// or "#" for the document itself.
//
// T is usually a struct. It may consist of
//
//   - booleans, strings, integers and big.Int, floats (the nearest value), and json.Number
//     (the digits as sent);
//   - other types that implement json.Unmarshaler, from values other than objects and
//     arrays, whose members they would match by rules of their own; they get null too;
//   - time.Time and other types that implement encoding.TextUnmarshaler, from strings;
//   - any, with json.Number for numbers;
//   - pointers to, slices of, arrays of, maps from string to, and structs of those, also
//     of itself if the schema repeats as the type does.
//
// As in encoding/json, a slice of bytes is base64 (RFC 4648 section 4) or an array of numbers,
// and a Go array may get fewer elements than it has. Embedded structs lend their fields, and
// tags name members and exclude fields ("-"). Unlike there, names match exactly, no value is
// cut or dropped to fit, and two fields for one member are refused. An absent member leaves its
// field at zero. Apart from json.Unmarshaler, null is nil, and is refused where nil is
// impossible.
//
// New refuses other types, fields for members that the schema does not describe, since
// their values would be unchecked, and types that cannot hold any of the types of values
// that the schema names.
func New[T any](document []byte, reference string, o Options) (*Body[T], error) {
	o, err := o.complete()
	if err != nil {
		return nil, fmt.Errorf("jsonbody: Options.%w", err)
	}
	s, err := compile(document, reference)
	if err != nil {
		return nil, fmt.Errorf("jsonbody: schema %q: %w", reference, err)
	}
	t := reflect.TypeFor[T]()
	set, err := make(setters).of(t, []*jsonschema.Schema{s.root})
	if err != nil {
		return nil, fmt.Errorf("jsonbody: %v: %w", t, err)
	}
	return &Body[T]{o, s, set}, nil
}

// Decode reads the body of r and returns its value. Errors caused by the client are
// *apierror.Error, which the handler returns to a Responder:
//
//   - 415 unsupported_media_type, with Accept or Accept-Encoding in the header of w
//     (RFC 9110 section 15.5.16);
//   - 413 body_too_large, with Connection: close in HTTP/1;
//   - 400 invalid_body, with a Detail for each invalid member, at most 20. The message
//     names the first three and counts the others.
//
// The header section is checked before the body is read: a client that sent
// Expect: 100-continue need not send a body that would be refused (RFC 9110 section
// 10.1.1). Texts name members, and contain no value that was sent.
//
// Another error means that the schema could not be applied.
func (b *Body[T]) Decode(w http.ResponseWriter, r *http.Request) (T, error) {
	data, err := b.options.read(w, r)
	if err != nil {
		var zero T
		return zero, err
	}
	return b.Parse(data)
}

// Parse is Decode for a body that has been read: it checks data and returns its
// value. It keeps no reference to data.
func (b *Body[T]) Parse(data []byte) (T, error) {
	var value, zero T
	if int64(len(data)) > b.options.MaxBytes {
		return zero, tooLarge(b.options.MaxBytes)
	}
	tree, p := parse(data, b.options)
	if p != nil {
		return zero, invalid(*p)
	}
	problems, err := b.schema.check(tree)
	if err != nil {
		return zero, err
	}
	if len(problems) > 0 {
		return zero, invalid(problems...)
	}
	if p := b.set(reflect.ValueOf(&value).Elem(), tree); p != nil {
		return zero, invalid(*p)
	}
	return value, nil
}

const (
	defaultBytes  = 64 << 10
	defaultDepth  = 16
	defaultValues = 2_500
)

// complete returns the options with the defaults in place of zero values.
func (o Options) complete() (Options, error) {
	switch {
	case o.MaxBytes < 0 || o.MaxBytes > 1<<30:
		return o, fmt.Errorf("MaxBytes must be from 1 to 1073741824, or 0 for %d, got %d", defaultBytes, o.MaxBytes)
	case o.MaxDepth < 0 || o.MaxDepth > 1000:
		return o, fmt.Errorf("MaxDepth must be from 1 to 1000, or 0 for %d, got %d", defaultDepth, o.MaxDepth)
	case o.MaxValues < 0:
		return o, fmt.Errorf("MaxValues must be 1 or more, or 0 for %d, got %d", defaultValues, o.MaxValues)
	}
	var types []string
	for i, m := range o.MediaTypes {
		media, params, err := mime.ParseMediaType(m)
		if err != nil || len(params) > 0 || !strings.Contains(media, "/") || strings.Contains(m, ";") {
			return o, fmt.Errorf("MediaTypes[%d] must be a media type without parameters, such as application/json, got %q", i, m)
		}
		types = append(types, media) // in lower case
	}
	if types == nil {
		types = []string{"application/json"}
	}
	return Options{
		MaxBytes:   cmp.Or(o.MaxBytes, defaultBytes),
		MaxDepth:   cmp.Or(o.MaxDepth, defaultDepth),
		MaxValues:  cmp.Or(o.MaxValues, defaultValues),
		MediaTypes: types,
	}, nil
}

// invalid is the 400 for a body with problems, in their order. The message names the
// first maxNamed.
func invalid(problems ...problem) *apierror.Error {
	message := "The request body " + problems[0].detail + "."
	if len(problems) > 1 || problems[0].pointer != "" {
		message = "The request body is not valid: "
		for i, p := range problems[:min(len(problems), maxNamed)] {
			if i > 0 {
				message += "; "
			}
			message += cmp.Or(p.pointer, "it") + " " + p.detail
		}
		if more := len(problems) - maxNamed; more > 0 {
			message += "; and " + strconv.Itoa(more) + " more"
		}
		message += "."
	}
	details := make([]apierror.Detail, 0, min(len(problems), maxDetails))
	for _, p := range problems[:cap(details)] {
		if p.whole {
			continue
		}
		details = append(details, apierror.Detail{Pointer: p.pointer, Detail: p.detail, Rule: p.rule})
	}
	return apierror.New(http.StatusBadRequest, "invalid_body", message).WithDetails(details...)
}

const (
	maxDetails = 20 // invalid members in one response
	maxNamed   = 3  // invalid members that the message names
)
