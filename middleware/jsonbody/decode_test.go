package jsonbody_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/jsonbody"
)

const dog = `{"name":"Rex","categoryId":7,"status":"available"}`

// decode reads the body of a request, which is refused with a status and a code, or, with 0,
// accepted. It returns the message of the refusal, and the header of the response.
func decode(t *testing.T, name string, o jsonbody.Options, r *http.Request, status int, code apierror.Code) (message string, h http.Header) {
	t.Helper()
	w := httptest.NewRecorder()
	pet, err := newPetBody(t, o).Decode(w, r)
	if status == 0 {
		if err != nil || pet != (NewPet{"Rex", 7, "available"}) || len(w.Header()) > 0 {
			t.Errorf("%s: %+v, %v and the fields %v, want the pet and no fields on the handler's response", name, pet, err, w.Header())
		}
		return "", w.Header()
	}
	e := refusal(t, err)
	if e.Status != status || e.Code != code {
		t.Errorf("%s: got %d %s, want %d %s", name, e.Status, e.Code, status, code)
	}
	return e.Message, w.Header()
}

// RFC 9110 sections 8.3.1, 8.4 and 15.5.16.
func TestContent(t *testing.T) {
	const all = "application/json, application/vnd.pets+json"
	own := jsonbody.Options{MediaTypes: []string{"application/json", "application/vnd.pets+JSON"}}
	for _, tt := range []struct {
		name    string
		options jsonbody.Options
		field   string
		values  []string
		status  int
		accept  string // what the client is told
	}{
		{"plain", jsonbody.Options{}, "Content-Type", []string{"application/json"}, 0, ""},
		{"upper case and quotes", jsonbody.Options{}, "Content-Type", []string{`Application/JSON; Charset="UTF-8"`}, 0, ""},
		{"configured", own, "Content-Type", []string{"application/vnd.pets+json"}, 0, ""},
		{"default beside configured", own, "Content-Type", []string{"application/json"}, 0, ""},
		{"neither", own, "Content-Type", []string{"text/json"}, 415, all},
		{"none", jsonbody.Options{}, "Content-Type", nil, 415, "application/json"},
		{"text", jsonbody.Options{}, "Content-Type", []string{"text/plain"}, 415, "application/json"},
		{"other charset", jsonbody.Options{}, "Content-Type", []string{"application/json; charset=utf-16"}, 415, "application/json"},
		{"two lines", jsonbody.Options{}, "Content-Type", []string{"application/json", "text/plain"}, 415, "application/json"},
		{"list", jsonbody.Options{}, "Content-Type", []string{"application/json, application/json"}, 415, "application/json"},
		{"malformed parameter", jsonbody.Options{}, "Content-Type", []string{"application/json; charset"}, 415, "application/json"},
		{"repeated parameter", jsonbody.Options{}, "Content-Type", []string{"application/json; charset=utf-8; charset=utf-16"}, 415, "application/json"},
		{"other JSON", jsonbody.Options{}, "Content-Type", []string{"application/vnd.pets+json"}, 415, "application/json"},
		{"merge patch", jsonbody.Options{}, "Content-Type", []string{"application/merge-patch+json"}, 415, "application/json"},

		{"identity", jsonbody.Options{}, "Content-Encoding", []string{"Identity, identity"}, 0, ""},
		{"empty", jsonbody.Options{}, "Content-Encoding", []string{""}, 0, ""},
		{"gzip", jsonbody.Options{}, "Content-Encoding", []string{"gzip"}, 415, "identity"},
		{"gzip in a list", jsonbody.Options{}, "Content-Encoding", []string{"identity, gzip"}, 415, "identity"},
		{"a second line", jsonbody.Options{}, "Content-Encoding", []string{"identity", "br"}, 415, "identity"},
		{"a charset", jsonbody.Options{}, "Content-Encoding", []string{"utf-8"}, 415, "identity"},
	} {
		r := post(dog)
		if r.Header[tt.field] = tt.values; tt.status > 0 { // a client may wait for 100 Continue (RFC 9110 section 10.1.1)
			r.Body = io.NopCloser(unread{t})
		}
		_, h := decode(t, tt.name, tt.options, r, tt.status, "unsupported_media_type")
		if got := h.Get("Accept") + h.Get("Accept-Encoding"); got != tt.accept {
			t.Errorf("%s: the client is told to send %q, want %q", tt.name, got, tt.accept)
		}
	}
}

func TestNoBody(t *testing.T) {
	const empty, text = "The request body is empty.", "The request body must have the Content-Type application/json."
	for _, tt := range []struct {
		name        string
		contentType []string
		body        io.Reader
		status      int
		code        apierror.Code
		message     string
	}{
		{"no content", nil, http.NoBody, 400, "invalid_body", empty},
		{"no content, named JSON", []string{"application/json"}, http.NoBody, 400, "invalid_body", empty},
		{"no content, named text", []string{"text/plain"}, http.NoBody, 415, "unsupported_media_type", text},
		{"chunks, none of them", []string{"application/json"}, io.MultiReader(), 400, "invalid_body", empty},
		{"white space", []string{"application/json"}, strings.NewReader(" \n"), 400, "invalid_body", empty},
	} {
		r := httptest.NewRequest(http.MethodPost, "/v1/pets", tt.body)
		r.Header["Content-Type"] = tt.contentType
		if message, _ := decode(t, tt.name, jsonbody.Options{}, r, tt.status, tt.code); message != tt.message {
			t.Errorf("%s: got %q, want %q", tt.name, message, tt.message)
		}
	}
}

// unread is a body that must not be touched.
type unread struct{ t *testing.T }

func (b unread) Read([]byte) (int, error) {
	b.t.Error("the body was read, though the header section decides")
	return 0, io.EOF
}

func TestTooLarge(t *testing.T) {
	const limit = int64(len(dog))
	outer := func(r *http.Request) *http.Request {
		r.Body = http.MaxBytesReader(nil, r.Body, limit-10)
		return r
	}
	chunked := func(body string) *http.Request {
		r := post(body)
		r.ContentLength = -1
		return r
	}
	announced := post("")
	announced.Body, announced.ContentLength = io.NopCloser(unread{t}), limit+1
	second := chunked(dog + " ")
	second.Proto, second.ProtoMajor, second.ProtoMinor = "HTTP/2.0", 2, 0
	for _, tt := range []struct {
		name       string
		r          *http.Request
		want       int
		message    string
		connection string
	}{
		{"at the limit", post(dog), 0, "", ""},
		{"at the limit, in chunks", chunked(dog), 0, "", ""},
		{"announced", announced, 413, "The request body is larger than 50 bytes.", "close"},
		{"in chunks", chunked(dog + " "), 413, "The request body is larger than 50 bytes.", "close"},
		{"past an outer limit", outer(post(dog)), 413, "The request body is larger than 40 bytes.", "close"},
		{"past an outer limit, in chunks", outer(chunked(dog)), 413, "The request body is larger than 40 bytes.", "close"},
		{"in HTTP/2", second, 413, "The request body is larger than 50 bytes.", ""},
	} {
		message, h := decode(t, tt.name, jsonbody.Options{MaxBytes: limit}, tt.r, tt.want, "body_too_large")
		if got := h.Get("Connection"); message != tt.message || got != tt.connection {
			t.Errorf("%s: got %q with Connection %q, want %q with %q", tt.name, message, got, tt.message, tt.connection)
		}
	}
}

func TestBodyThatBreaksOff(t *testing.T) {
	broken := errors.New("connection reset by 192.0.2.1")
	r := post(dog)
	r.Body = io.NopCloser(io.MultiReader(strings.NewReader(dog[:10]), errorReader{broken}))
	_, err := newPetBody(t, jsonbody.Options{}).Decode(httptest.NewRecorder(), r)
	e := refusal(t, err)
	if e.Status != 400 || e.Message != "The request body could not be read." {
		t.Errorf("got %d %q, want 400 without the cause", e.Status, e.Message)
	}
	if !errors.Is(err, broken) {
		t.Errorf("the error does not hold the cause for the log")
	}
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }

// openAPI is the part of a service's document that has to do with bodies.
const openAPI = `{
	"openapi": "3.1.1",
	"info": {"title": "Pets", "version": "1.0.0"},
	"paths": {"/pets": {"$ref": "./paths.json"}},
	"components": {"schemas": {
		"PetStatus": {"type": "string", "enum": ["available", "pending", "sold"]},
		"NewPet": {
			"type": "object",
			"required": ["name", "categoryId"],
			"properties": {
				"name": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[^\\x00-\\x1f\\x7f-\\x9f]*$"},
				"categoryId": {
					"type": "integer", "format": "int64",
					"minimum": -9223372036854775808, "maximum": 9223372036854775807
				},
				"status": {"$ref": "#/components/schemas/PetStatus"}
			}
		}
	}}
}`

type Status string

type NewPet struct {
	Name       string `json:"name"`
	CategoryID int64  `json:"categoryId"`
	Status     Status `json:"status,omitempty"`
}

func newPetBody(t testing.TB, o jsonbody.Options) *jsonbody.Body[NewPet] {
	t.Helper()
	b, err := jsonbody.New[NewPet]([]byte(openAPI), "#/components/schemas/NewPet", o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return b
}

// bodyOf compiles a schema by itself.
func bodyOf[T any](t testing.TB, schema string, o jsonbody.Options) *jsonbody.Body[T] {
	t.Helper()
	b, err := jsonbody.New[T]([]byte(schema), "#", o)
	if err != nil {
		t.Fatalf("New with schema %s: %v", schema, err)
	}
	return b
}

// refusal returns the error as what is sent to the client.
func refusal(t testing.TB, err error) *apierror.Error {
	t.Helper()
	e, ok := errors.AsType[*apierror.Error](err)
	if !ok {
		t.Fatalf("got error %v, want an *apierror.Error", err)
	}
	return e
}

// post is a request to create a pet, as a client sends it.
func post(body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/v1/pets", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return r
}
