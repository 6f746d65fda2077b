package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
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

// etagOf returns the strong validator of a representation.
func etagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

// represent answers GET or HEAD with a representation of the target, or with 304
// if the client has it. An etag of "" means that it has no validator.
func represent(w http.ResponseWriter, r *http.Request, body []byte, etag string) error {
	notModified, err := preconditions(r, etag)
	if err != nil {
		return err
	}
	if etag != "" {
		w.Header().Set("ETag", etag)
	}
	if notModified {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	write(w, r, http.StatusOK, body)
	return nil
}

func write(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // fails only if the client has disconnected
	}
}
