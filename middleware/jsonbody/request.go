package jsonbody

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/animalstore/gatehouse/apierror"
)

// read checks the header section before it reads the body: net/http sends 100 Continue
// on the first Read.
func (o Options) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if empty := r.Body == nil || r.Body == http.NoBody; empty && len(r.Header["Content-Type"]) == 0 {
		return nil, invalid(problem{whole: true, detail: "is empty"})
	}
	if err := o.checkHeader(w, r); err != nil {
		return nil, err
	}
	if r.ContentLength > o.MaxBytes {
		return nil, closeConnection(w, r, tooLarge(o.MaxBytes))
	}
	if r.Body == nil {
		return nil, nil
	}
	// One byte more than allowed shows that a body is too long.
	data, err := io.ReadAll(io.LimitReader(r.Body, o.MaxBytes+1))
	switch exceeded, ok := errors.AsType[*http.MaxBytesError](err); {
	case ok:
		return nil, closeConnection(w, r, tooLarge(exceeded.Limit))
	case err != nil:
		return nil, apierror.New(http.StatusBadRequest, "invalid_body",
			"The request body could not be read.").Wrap(fmt.Errorf("jsonbody: reading the body: %w", err))
	case int64(len(data)) > o.MaxBytes:
		return nil, closeConnection(w, r, tooLarge(o.MaxBytes))
	}
	return data, nil
}

// checkHeader returns a 415 for content that is not JSON or is encoded (RFC 9110
// sections 15.5.16 and 12.5.3).
func (o Options) checkHeader(w http.ResponseWriter, r *http.Request) error {
	for _, line := range r.Header["Content-Encoding"] {
		for coding := range strings.SplitSeq(line, ",") {
			if coding = strings.Trim(coding, " \t"); coding != "" && !strings.EqualFold(coding, "identity") {
				w.Header().Set("Accept-Encoding", "identity")
				return apierror.New(http.StatusUnsupportedMediaType, "unsupported_media_type",
					"The request body must not have a Content-Encoding.")
			}
		}
	}
	if !o.accepts(r.Header["Content-Type"]) {
		w.Header().Set("Accept", strings.Join(o.MediaTypes, ", "))
		return apierror.New(http.StatusUnsupportedMediaType, "unsupported_media_type",
			"The request body must have the Content-Type "+strings.Join(o.MediaTypes, " or ")+".")
	}
	return nil
}

// accepts wants exactly one media type (RFC 9110 section 8.3), and UTF-8 if it
// names a charset, which has no meaning for JSON (RFC 8259 section 11).
func (o Options) accepts(contentType []string) bool {
	if len(contentType) != 1 {
		return false
	}
	media, params, err := mime.ParseMediaType(contentType[0])
	if err != nil || !slices.Contains(o.MediaTypes, media) {
		return false
	}
	charset, named := params["charset"]
	return !named || strings.EqualFold(charset, "utf-8")
}

func tooLarge(limit int64) *apierror.Error {
	e := apierror.New(http.StatusRequestEntityTooLarge, "body_too_large",
		fmt.Sprintf("The request body is larger than %d bytes.", limit))
	e.Args = map[string]any{"limit": limit}
	return e
}

// closeConnection makes net/http close the connection after err, since the rest of the
// body is not read. net/http does so itself only if http.MaxBytesReader was given its
// own ResponseWriter, not one that wraps it. HTTP/2 has no Connection field (RFC 9113
// section 8.2.2) and resets the stream.
func closeConnection(w http.ResponseWriter, r *http.Request, err *apierror.Error) error {
	if r.ProtoMajor < 2 {
		w.Header().Set("Connection", "close")
	}
	return err
}
