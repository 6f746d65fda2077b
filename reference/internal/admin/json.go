package admin

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/animalstore/gatehouse/apierror"
)

// maxBody is the size of the largest request body in bytes.
const maxBody = 16 << 10

var (
	errMediaType = apierror.New(http.StatusUnsupportedMediaType, apierror.CodeUnsupportedMediaType,
		"Send the body as JSON, with Content-Type: application/json.")
	errBodyTooLarge = apierror.New(http.StatusRequestEntityTooLarge, apierror.CodeBodyTooLarge,
		"The body is larger than 16 KiB.")
)

func invalidBody(message string) *apierror.Error {
	return apierror.New(http.StatusBadRequest, apierror.CodeInvalidBody, message)
}

// readJSON reads a body of one JSON object into out. Members that out does not have are
// refused, because they would have no effect. A page of another origin cannot send the
// media type without asking first (Fetch, CORS preflight).
func readJSON(w http.ResponseWriter, r *http.Request, out any) error {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return errMediaType
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	err := d.Decode(out)
	if err == nil {
		if _, err = d.Token(); err == io.EOF {
			return nil
		}
		if err == nil {
			err = errors.New("more than one value")
		}
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return errBodyTooLarge
	}
	return invalidBody("The body must be one JSON object of the documented form: " + whatIsWrong(err) + ".")
}

// whatIsWrong returns the text of an error without names of Go.
func whatIsWrong(err error) string {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if e.Field == "" {
			return "got another value, " + e.Value
		}
		return e.Field + " has a value of the wrong type, " + e.Value
	}
	switch {
	case errors.Is(err, io.EOF):
		return "it is empty"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends too early"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// writeJSON answers with JSON, which no cache may store.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, err = w.Write(append(body, '\n'))
	return err
}
