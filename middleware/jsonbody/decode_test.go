package jsonbody_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/jsonbody"
)

const dog = `{"name":"Rex","categoryId":7,"status":"available"}`

func TestDecodeReturnsTheValue(t *testing.T) {
	w := httptest.NewRecorder()
	pet, err := newPetBody(t, jsonbody.Options{}).Decode(w, post(dog))
	if err != nil {
		t.Fatalf("Decode: %v", err)
	}
	if diff := cmp.Diff(NewPet{"Rex", 7, "available"}, pet); diff != "" {
		t.Errorf("Decode (-want +got):\n%s", diff)
	}
	if len(w.Header()) > 0 {
		t.Errorf("Decode set fields %v on a response that is the handler's", w.Header())
	}
}

// RFC 9110 sections 8.3.1 and 15.5.16.
func TestContentType(t *testing.T) {
	own := jsonbody.Options{MediaTypes: []string{"application/json", "application/vnd.pets+JSON"}}
	for _, tt := range []struct {
		name    string
		options jsonbody.Options
		values  []string
		want    int
	}{
		{"plain", jsonbody.Options{}, []string{"application/json"}, 0},
		{"upper case and quotes", jsonbody.Options{}, []string{`Application/JSON; Charset="UTF-8"`}, 0},
		{"configured", own, []string{"application/vnd.pets+json"}, 0},
		{"default beside configured", own, []string{"application/json"}, 0},
		{"none", jsonbody.Options{}, nil, 415},
		{"text", jsonbody.Options{}, []string{"text/plain"}, 415},
		{"other charset", jsonbody.Options{}, []string{"application/json; charset=utf-16"}, 415},
		{"two lines", jsonbody.Options{}, []string{"application/json", "text/plain"}, 415},
		{"list", jsonbody.Options{}, []string{"application/json, application/json"}, 415},
		{"malformed parameter", jsonbody.Options{}, []string{"application/json; charset"}, 415},
		{"repeated parameter", jsonbody.Options{}, []string{"application/json; charset=utf-8; charset=utf-16"}, 415},
		{"other JSON", jsonbody.Options{}, []string{"application/vnd.pets+json"}, 415},
		{"merge patch", jsonbody.Options{}, []string{"application/merge-patch+json"}, 415},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, r := httptest.NewRecorder(), post(dog)
			r.Header["Content-Type"] = tt.values
			_, err := newPetBody(t, tt.options).Decode(w, r)
			if tt.want == 0 {
				if err != nil {
					t.Errorf("Decode: %v, want it accepted", err)
				}
				return
			}
			if e := refusal(t, err); e.Status != tt.want || e.Code != apierror.CodeUnsupportedMediaType {
				t.Errorf("got %d %s, want %d unsupported_media_type", e.Status, e.Code, tt.want)
			}
			want := "application/json"
			if tt.options.MediaTypes != nil {
				want = "application/json, application/vnd.pets+json"
			}
			if got := w.Header().Get("Accept"); got != want {
				t.Errorf("Accept is %q, want %q to tell the client what works", got, want)
			}
		})
	}
}

func TestContentEncoding(t *testing.T) {
	for _, tt := range []struct {
		values []string
		want   int
	}{
		{[]string{"identity"}, 0},
		{[]string{"Identity, identity"}, 0},
		{[]string{""}, 0},
		{[]string{"gzip"}, 415},
		{[]string{"identity, gzip"}, 415},
		{[]string{"identity", "br"}, 415},
		{[]string{"utf-8"}, 415},
	} {
		t.Run(fmt.Sprint(tt.values), func(t *testing.T) {
			w, r := httptest.NewRecorder(), post(dog)
			r.Header["Content-Encoding"] = tt.values
			_, err := newPetBody(t, jsonbody.Options{}).Decode(w, r)
			if tt.want == 0 {
				if err != nil {
					t.Errorf("Decode: %v, want it accepted", err)
				}
				return
			}
			if e := refusal(t, err); e.Status != tt.want || e.Code != apierror.CodeUnsupportedMediaType {
				t.Errorf("got %d %s, want %d unsupported_media_type", e.Status, e.Code, tt.want)
			}
			if got := w.Header().Get("Accept-Encoding"); got != "identity" {
				t.Errorf("Accept-Encoding is %q, want identity (RFC 9110 section 12.5.3)", got)
			}
		})
	}
}

func TestNoBody(t *testing.T) {
	for _, tt := range []struct {
		name        string
		contentType []string
		body        io.Reader
		status      int
		message     string
	}{
		{"no content", nil, http.NoBody, 400, "The request body is empty."},
		{"no content, named JSON", []string{"application/json"}, http.NoBody, 400, "The request body is empty."},
		{"no content, named text", []string{"text/plain"}, http.NoBody, 415, "The request body must have the Content-Type application/json."},
		{"chunks, none of them", []string{"application/json"}, io.MultiReader(), 400, "The request body is empty."},
		{"white space", []string{"application/json"}, strings.NewReader(" \n"), 400, "The request body is empty."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/v1/pets", tt.body)
			r.Header["Content-Type"] = tt.contentType
			_, err := newPetBody(t, jsonbody.Options{}).Decode(httptest.NewRecorder(), r)
			if e := refusal(t, err); e.Status != tt.status || e.Message != tt.message {
				t.Errorf("got %d %q, want %d %q", e.Status, e.Message, tt.status, tt.message)
			}
		})
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
		t.Run(tt.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			_, err := newPetBody(t, jsonbody.Options{MaxBytes: limit}).Decode(w, tt.r)
			if got := w.Header().Get("Connection"); got != tt.connection {
				t.Errorf("Connection is %q, want %q", got, tt.connection)
			}
			if tt.want == 0 {
				if err != nil {
					t.Errorf("Decode: %v, want it accepted", err)
				}
				return
			}
			if e := refusal(t, err); e.Status != tt.want || e.Code != apierror.CodeBodyTooLarge || e.Message != tt.message {
				t.Errorf("got %d %s %q, want %d body_too_large %q", e.Status, e.Code, e.Message, tt.want, tt.message)
			}
		})
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

// RFC 9110 section 10.1.1: a client that waits for 100 Continue gets the final
// status at once if the header section decides it.
func TestExpectContinue(t *testing.T) {
	body := newPetBody(t, jsonbody.Options{})
	errs := apierror.Responder{Logger: slog.New(slog.DiscardHandler)}
	srv := httptest.NewServer(errs.Handle(func(w http.ResponseWriter, r *http.Request) error {
		_, err := body.Decode(w, r)
		return err
	}))
	defer srv.Close()
	for _, tt := range []struct{ name, header, want string }{
		{"other media type", "Content-Type: text/plain\r\nContent-Length: 50\r\n", "HTTP/1.1 415 Unsupported Media Type"},
		{"encoded", "Content-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 50\r\n", "HTTP/1.1 415 Unsupported Media Type"},
		{"too large", "Content-Type: application/json\r\nContent-Length: 65537\r\n", "HTTP/1.1 413 Request Entity Too Large"},
		{"good", "Content-Type: application/json\r\nContent-Length: 50\r\n", "HTTP/1.1 100 Continue"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", srv.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "POST /v1/pets HTTP/1.1\r\nHost: pets\r\nExpect: 100-continue\r\n%s\r\n", tt.header)
			line, err := bufio.NewReader(conn).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSpace(line); got != tt.want {
				t.Errorf("the first status line is %q, want %q", got, tt.want)
			}
		})
	}
}
