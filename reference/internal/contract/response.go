package contract

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// Response is a response with its body and what it answers.
type Response struct {
	*http.Response
	Method, Target string // of the request
	Data           []byte // the body, decoded
	Encoded        []byte // the body as it was sent; nil: Data
}

// Error is the body of an error, in either form.
type Error struct {
	Code    string
	Message string // or detail
	Status  int
	Errors  []struct{ Pointer, Detail string }
}

func (r *Response) body() io.ReadCloser { return io.NopCloser(bytes.NewReader(r.Data)) }

// Error reads the body of an error.
func (r *Response) Error() (Error, error) {
	var e struct {
		Error
		Detail string
	}
	if err := json.Unmarshal(r.Data, &e); err != nil {
		return Error{}, fmt.Errorf("the body of an error is not JSON: %w", err)
	}
	if e.Message == "" {
		e.Message = e.Detail
	}
	return e.Error, nil
}

// decode sets Data from a body that was sent with a content coding.
func (r *Response) decode() error {
	switch coding := r.Header.Get("Content-Encoding"); {
	case coding == "" || len(r.Data) == 0:
		return nil
	case coding != "gzip":
		return fmt.Errorf("Content-Encoding is %q", coding)
	}
	z, err := gzip.NewReader(bytes.NewReader(r.Data))
	if err != nil {
		return err
	}
	r.Encoded = r.Data
	r.Data, err = io.ReadAll(z)
	return err
}

// length returns the size of the body as it was sent.
func (r *Response) length() int {
	if r.Encoded != nil {
		return len(r.Encoded)
	}
	return len(r.Data)
}

// Code returns the code of an error, or "" if there is none.
func (r *Response) Code() string {
	e, err := r.Error()
	if err != nil {
		return ""
	}
	return e.Code
}

// Int returns a field that holds an integer, or -1.
func (r *Response) Int(field string) int64 {
	n, err := strconv.ParseInt(r.Header.Get(field), 10, 64)
	if err != nil {
		return -1
	}
	return n
}
