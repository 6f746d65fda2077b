package jsonbody

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/animalstore/gatehouse/apierror"
)

// Options limit what is read. The zero value has the defaults.
type Options struct {
	// MaxBytes is the size of the largest body, up to 1 GiB. 0: 64 KiB.
	MaxBytes int64
	// MaxDepth is how deep objects and arrays are nested at most, from 1 to 1000.
	// 0: 16.
	MaxDepth int
	// MaxValues is how many values a body holds at most: objects, arrays, strings,
	// numbers, booleans and nulls. It bounds the time that the schema takes, which
	// is some microseconds for each. 0: 2,500.
	MaxValues int
	// MediaTypes are accepted in Content-Type. Nil: application/json. Types such as
	// application/merge-patch+json are JSON with a meaning of their own, and not
	// accepted unless named.
	MediaTypes []string
}

// Body reads bodies of one schema into values of type T. It is safe for concurrent
// use.
type Body[T any] struct {
	reader reader
	limits limits
	schema *schema
	fill   filler
}

// New prepares reading bodies into T.
//
// The document is JSON: a schema, or a document with schemas in it. The reference
// says which schema is meant, as $ref would from inside of it:
// "#/components/schemas/NewPet", or "#" for the document itself.
//
// T is a struct, or whatever the schema describes, of booleans, strings, integers,
// float64 (the nearest), json.Number (the digits as sent), types that implement
// encoding.TextUnmarshaler (from strings), any, and pointers to, slices of, maps
// from string to, and structs of those. Members of objects are named by json tags,
// or else by the Go names, exactly; "-" leaves a field out. A member that is absent
// leaves its field at zero; null is nil, and refused where there is no nil. New
// refuses other types, types that cannot hold any value that the schema allows, and
// fields for members that the schema does not describe, whose values would not be
// checked.
func New[T any](document []byte, reference string, o Options) (*Body[T], error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("jsonbody: Options.%w", err)
	}
	s, err := compile(document, reference)
	if err != nil {
		return nil, fmt.Errorf("jsonbody: schema %q: %w", reference, err)
	}
	t := reflect.TypeFor[T]()
	fill, err := newFiller(t, []*jsonschema.Schema{s.root}, nil)
	if err != nil {
		return nil, fmt.Errorf("jsonbody: %v: %w", t, err)
	}
	return &Body[T]{reader: newReader(o), limits: newLimits(o), schema: s, fill: fill}, nil
}

// MustNew is New for a document that is part of the program. It panics where New
// returns an error.
func MustNew[T any](document []byte, reference string, o Options) *Body[T] {
	b, err := New[T](document, reference, o)
	if err != nil {
		panic(err)
	}
	return b
}

// Decode reads the body of r and returns its value. All errors that are the
// client's are *apierror.Error, to be returned to a Responder:
//
//   - 415 unsupported_media_type, with Accept or Accept-Encoding in the header of w
//     (RFC 9110 section 15.5.16);
//   - 413 body_too_large, with Connection: close in HTTP/1;
//   - 400 invalid_body, with a Detail for each member at fault, at most 20. The
//     message names the first three and counts the others.
//
// What can be refused by the header section is refused before the body is read:
// a client that sent Expect: 100-continue need not send it (RFC 9110 section
// 10.1.1). Texts name members, and hold no value that was sent.
//
// Another error means that the schema could not be applied.
func (b *Body[T]) Decode(w http.ResponseWriter, r *http.Request) (T, error) {
	data, err := b.reader.read(w, r)
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
	if int64(len(data)) > b.reader.maxBytes {
		return zero, tooLarge(b.reader.maxBytes)
	}
	tree, p := parse(data, b.limits)
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
	if p := b.fill(reflect.ValueOf(&value).Elem(), tree); p != nil {
		return zero, invalid(*p)
	}
	return value, nil
}

func (o Options) validate() error {
	switch {
	case o.MaxBytes < 0 || o.MaxBytes > 1<<30:
		return errors.New("MaxBytes: is not from 1 to 1 GiB")
	case o.MaxDepth < 0 || o.MaxDepth > 1000:
		return errors.New("MaxDepth: is not from 1 to 1000")
	case o.MaxValues < 0:
		return errors.New("MaxValues: is negative")
	}
	for i, m := range o.MediaTypes {
		if err := checkMediaType(m); err != nil {
			return fmt.Errorf("MediaTypes[%d]: %w", i, err)
		}
	}
	return nil
}

// invalid is the 400 for what is wrong with a body. Problems are in order, and the
// message names the first maxNamed.
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
		details = append(details, apierror.Detail{Pointer: p.pointer, Detail: p.detail})
	}
	return apierror.New(http.StatusBadRequest, apierror.CodeInvalidBody, message).WithDetails(details...)
}

const (
	maxDetails = 20 // members at fault that one answer names
	maxNamed   = 3  // those of them that the message names
)
