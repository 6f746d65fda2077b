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

const (
	defaultBytes     = 64 << 10
	defaultMediaType = "application/json"

	// firstRead is the largest buffer that is allocated because of Content-Length alone.
	firstRead = 4 << 10
)

// reader gets the bytes of a body.
type reader struct {
	maxBytes int64
	accepted []string // media types in lower case
	accept   string   // the same as the value of an Accept field
}

func newReader(o Options) reader {
	rd := reader{maxBytes: o.MaxBytes}
	if rd.maxBytes == 0 {
		rd.maxBytes = defaultBytes
	}
	for _, m := range o.MediaTypes {
		rd.accepted = append(rd.accepted, strings.ToLower(m))
	}
	if len(rd.accepted) == 0 {
		rd.accepted = []string{defaultMediaType}
	}
	rd.accept = strings.Join(rd.accepted, ", ")
	return rd
}

// read checks the header section before it reads the body: net/http sends 100 Continue
// on the first Read.
func (rd reader) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if empty := r.Body == nil || r.Body == http.NoBody; empty && len(r.Header["Content-Type"]) == 0 {
		return nil, invalid(problem{whole: true, detail: "is empty"})
	}
	if err := rd.checkHeader(w, r); err != nil {
		return nil, err
	}
	if r.ContentLength > rd.maxBytes {
		return nil, closeConnection(w, r, tooLarge(rd.maxBytes))
	}
	if r.Body == nil {
		return nil, nil
	}
	// One byte more than allowed shows that a body is too long.
	data, err := readAll(io.LimitReader(r.Body, rd.maxBytes+1), r.ContentLength)
	switch exceeded, ok := errors.AsType[*http.MaxBytesError](err); {
	case ok:
		return nil, closeConnection(w, r, tooLarge(exceeded.Limit))
	case err != nil:
		return nil, apierror.New(http.StatusBadRequest, apierror.CodeInvalidBody,
			"The request body could not be read.").Wrap(fmt.Errorf("jsonbody: reading the body: %w", err))
	case int64(len(data)) > rd.maxBytes:
		return nil, closeConnection(w, r, tooLarge(rd.maxBytes))
	}
	return data, nil
}

// readAll is io.ReadAll with a first buffer of the announced size, up to firstRead.
func readAll(from io.Reader, announced int64) ([]byte, error) {
	// One byte more, so that the end is found without growing.
	data := make([]byte, 0, min(max(announced, 511), firstRead)+1)
	for {
		n, err := from.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
		if len(data) == cap(data) {
			data = slices.Grow(data, len(data))
		}
	}
}

// checkHeader returns a 415 for content that is not JSON or is encoded (RFC 9110
// sections 15.5.16 and 12.5.3).
func (rd reader) checkHeader(w http.ResponseWriter, r *http.Request) error {
	for _, line := range r.Header["Content-Encoding"] {
		for coding := range strings.SplitSeq(line, ",") {
			if coding = strings.Trim(coding, " \t"); coding != "" && !strings.EqualFold(coding, "identity") {
				w.Header().Set("Accept-Encoding", "identity")
				return apierror.New(http.StatusUnsupportedMediaType, apierror.CodeUnsupportedMediaType,
					"The request body must not have a Content-Encoding.")
			}
		}
	}
	if !rd.accepts(r.Header["Content-Type"]) {
		w.Header().Set("Accept", rd.accept)
		return apierror.New(http.StatusUnsupportedMediaType, apierror.CodeUnsupportedMediaType,
			"The request body must have the Content-Type "+strings.Join(rd.accepted, " or ")+".")
	}
	return nil
}

// accepts wants exactly one media type (RFC 9110 section 8.3), and UTF-8 if it
// names a charset, which has no meaning for JSON (RFC 8259 section 11).
func (rd reader) accepts(contentType []string) bool {
	if len(contentType) != 1 {
		return false
	}
	if contentType[0] == defaultMediaType && rd.accept == defaultMediaType {
		return true // what nearly all clients send
	}
	media, params, err := mime.ParseMediaType(contentType[0])
	if err != nil || !slices.Contains(rd.accepted, media) {
		return false
	}
	charset, named := params["charset"]
	return !named || strings.EqualFold(charset, "utf-8")
}

func checkMediaType(m string) error {
	media, params, err := mime.ParseMediaType(m)
	if err != nil || len(params) > 0 || !strings.Contains(media, "/") || strings.Contains(m, ";") {
		return fmt.Errorf("must be a media type without parameters, such as application/json, got %q", m)
	}
	return nil
}

func tooLarge(limit int64) *apierror.Error {
	return apierror.New(http.StatusRequestEntityTooLarge, apierror.CodeBodyTooLarge,
		fmt.Sprintf("The request body is larger than %d bytes.", limit))
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
