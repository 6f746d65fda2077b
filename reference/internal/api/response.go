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
	"strings"
	"time"

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

// write answers with JSON.
func write(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // fails only if the client has disconnected
	}
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

var errPrecondition = apierror.New(http.StatusPreconditionFailed, "precondition_failed",
	"A precondition of the request failed: If-Match or If-None-Match.")

// notModified evaluates If-Match and If-None-Match of GET or HEAD in the order of RFC 9110
// section 13.2.2, and sets ETag, if there is one. It reports whether it has answered with
// 304. The target of r exists; etag is the strong validator of its representation, or "" if
// it has none. All other checks come first (section 13.2.1). There are no modification
// dates, so the fields about them are ignored (section 13.1.4).
func notModified(w http.ResponseWriter, r *http.Request, etag string) (answered bool, err error) {
	if lines, ok := r.Header["If-Match"]; ok && !matches(lines, etag, true) {
		return false, errPrecondition
	}
	if etag != "" {
		w.Header().Set("ETag", etag)
	}
	lines, ok := r.Header["If-None-Match"]
	if !ok || !matches(lines, etag, false) {
		return false, nil
	}
	w.WriteHeader(http.StatusNotModified)
	return true, nil
}

// hasPreconditions reports whether r has If-Match or If-None-Match.
func hasPreconditions(r *http.Request) bool {
	return r.Header["If-Match"] != nil || r.Header["If-None-Match"] != nil
}

// isRead reports whether r is GET or HEAD.
func isRead(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead
}

// matches reports whether the lines of a field name etag, or any representation
// by "*". In the strong comparison weak tags match nothing (RFC 9110 section
// 8.8.3.2). A malformed list ends where it is malformed.
//
//	field      = "*" / #entity-tag
//	entity-tag = [ "W/" ] DQUOTE *etagc DQUOTE
func matches(lines []string, etag string, strong bool) bool {
	if len(lines) == 1 && strings.Trim(lines[0], " \t") == "*" {
		return true
	}
	for _, line := range lines {
		for line != "" {
			line = strings.TrimLeft(line, " \t,")
			tag, weak := strings.CutPrefix(line, "W/")
			if tag == "" || tag[0] != '"' {
				break
			}
			end := strings.IndexByte(tag[1:], '"')
			if end < 0 {
				break
			}
			end += len(`""`)
			if tag[:end] == etag && !(weak && strong) {
				return true
			}
			line = tag[end:]
		}
	}
	return false
}

// acceptsGzip reports whether a client that sent these Accept-Encoding field lines
// accepts gzip, and does not prefer to have no coding (RFC 9110 section 12.5.3).
// Malformed members are skipped.
//
//	Accept-Encoding = #( codings [ weight ] )
//	codings         = content-coding / "identity" / "*"
func acceptsGzip(lines []string) bool {
	gzip, identity, others := -1.0, -1.0, -1.0
	for _, line := range lines {
		for member := range strings.SplitSeq(line, ",") {
			coding, weight, weighed := strings.Cut(member, ";")
			q := 1.0
			if weighed {
				var ok bool
				if q, ok = parseWeight(weight); !ok {
					continue
				}
			}
			switch strings.ToLower(strings.Trim(coding, " \t")) {
			case "gzip", "x-gzip": // the same (RFC 9110 section 8.4.1.3)
				gzip = max(gzip, q)
			case "identity":
				identity = max(identity, q)
			case "*":
				others = max(others, q)
			}
		}
	}
	if gzip < 0 {
		gzip = others
	}
	return gzip > 0 && gzip >= identity
}

// parseWeight reads what follows the semicolon of a weight (RFC 9110 section
// 12.4.2): "q=" and a number from 0 to 1.
func parseWeight(text string) (q float64, ok bool) {
	name, value, _ := strings.Cut(strings.Trim(text, " \t"), "=")
	q, err := strconv.ParseFloat(value, 64)
	return q, strings.EqualFold(name, "q") && err == nil && q >= 0 && q <= 1
}

var errUnavailable = &apierror.Error{
	Status: http.StatusServiceUnavailable, Code: "unavailable",
	Message:    "The service is temporarily unavailable. Wait as long as Retry-After says.",
	RetryAfter: 5 * time.Second,
}

// storeError turns temporary errors of the store, such as a timeout, into a 503. It returns
// any other error as it is.
func storeError(err error) error {
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		return errUnavailable.Wrap(err)
	}
	return err
}
