package api

import (
	"net/http"
	"strings"

	"github.com/animalstore/gatehouse/apierror"
)

var errPrecondition = apierror.New(http.StatusPreconditionFailed, apierror.CodePreconditionFailed,
	"A precondition of the request failed: If-Match or If-None-Match.")

// preconditions evaluates If-Match and If-None-Match in the order of RFC 9110
// section 13.2.2. The target of r exists; etag is the strong validator of its
// representation, or "" if it has none. All other checks come first (section 13.2.1).
// There are no modification dates, so the fields about them are ignored (section
// 13.1.4).
func preconditions(r *http.Request, etag string) (notModified bool, err error) {
	if lines, ok := r.Header["If-Match"]; ok && !matches(lines, etag, true) {
		return false, errPrecondition
	}
	if lines, ok := r.Header["If-None-Match"]; ok && matches(lines, etag, false) {
		if isRead(r) {
			return true, nil
		}
		return false, errPrecondition
	}
	return false, nil
}

// hasPreconditions reports whether r has a field that preconditions evaluates.
func hasPreconditions(r *http.Request) bool {
	return r.Header["If-Match"] != nil || r.Header["If-None-Match"] != nil
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
