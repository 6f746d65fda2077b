package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// encode returns v as one line of JSON. It is encoded before anything is written, so an
// error can still be answered, and the length is known for HEAD.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // the media type and nosniff prevent reading it as HTML
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode response: %w", err)
	}
	return b.Bytes(), nil
}

// etagOf returns the strong validator of a representation, which consists of its body and
// of a header field that changes independently of the body.
func etagOf(body []byte, field string) string {
	sum := sha256.Sum256(body)
	if field != "" {
		sum = sha256.Sum256(append(sum[:], field...))
	}
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

// represent answers GET or HEAD with a representation of the target, or with 304
// if the client has it. An etag of "" means that it has no validator.
func represent(w http.ResponseWriter, r *http.Request, body []byte, etag string) error {
	answered, err := notModified(w, r, etag)
	if answered || err != nil {
		return err
	}
	write(w, r, http.StatusOK, body)
	return nil
}

// notModified evaluates the preconditions of GET or HEAD and sets ETag. It reports
// whether it has answered with 304.
func notModified(w http.ResponseWriter, r *http.Request, etag string) (answered bool, err error) {
	unchanged, err := preconditions(r, etag)
	if err != nil {
		return false, err
	}
	if etag != "" {
		w.Header().Set("ETag", etag)
	}
	if unchanged {
		w.Header().Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
	}
	return unchanged, nil
}

// write answers with a body of the Content-Type that is set already, or of JSON.
func write(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	h := w.Header()
	if len(h["Content-Type"]) == 0 {
		h.Set("Content-Type", "application/json")
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // fails only if the client has disconnected
	}
}

var errUnavailable = apierror.New(http.StatusServiceUnavailable, apierror.CodeUnavailable,
	"The service is temporarily unavailable. Wait as long as Retry-After says.")

// retryAfter is the Retry-After of such a 503, in seconds.
const retryAfter = "5"

// storeError turns errors that can pass, such as a timeout, into a 503. It returns any
// other error as it is.
func storeError(w http.ResponseWriter, err error) error {
	switch {
	case errors.Is(err, errUnavailable):
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		err = errUnavailable.Wrap(err)
	default:
		return err
	}
	w.Header().Set("Retry-After", retryAfter)
	return err
}
