package transport

import (
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/apierror"
)

const (
	// shortestPause is the wait after a denial that names a shorter one.
	shortestPause = time.Second

	// unknownPause is the wait after a denial whose fields say that each quota has some left:
	// it is of a limit that the fields do not show. GitHub asks for a minute.
	unknownPause = time.Minute

	maxErrorBody = 8 << 10  // of a denial, read for its code
	maxDrain     = 64 << 10 // of a response, read so that its connection can be used again
)

// verdict is what a response says about the next requests of its key.
type verdict struct {
	refused bool          // the request was not served and may be sent again
	busy    bool          // it is a 503: the service is at fault, and may have begun
	wait    time.Duration // until the next request; 0: none is named
}

// judge returns the verdict of a response that arrived at the time now.
func judge(resp *http.Response, now time.Time) verdict {
	server := serverTime(resp.Header, now)
	after, named := retryAfter(resp.Header, server)
	var l limits
	if resp.Header.Get("Age") == "" { // else it comes from a cache, and its fields are old
		l = readLimits(resp.Header, server)
	}
	v := verdict{wait: l.reset}
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		v.refused = true
	case http.StatusForbidden:
		// GitHub's limits. A 403 for another reason that came with the last unit looks
		// the same, and is known after the wait.
		v.refused = named || l.reset > 0
	case http.StatusServiceUnavailable:
		v.refused, v.busy = named, named
	}
	switch {
	case !v.refused:
	case named:
		v.wait = max(after, shortestPause)
	case l.present && !l.empty:
		v.wait = unknownPause
	}
	return v
}

// refusal is what the body of a denial says.
type refusal struct {
	code    apierror.Code
	message string
	banned  bool
}

// abnormalUsage is the problem type of a ban (draft-ietf-httpapi-ratelimit-headers-11
// section 5.3).
const abnormalUsage = "#abnormal-usage-detected"

// connectDetail is a google.rpc.ErrorInfo in an error of the Connect protocol. Its Value is
// a protocol buffer; Debug is the same as JSON.
type connectDetail struct {
	Debug struct{ Reason, Domain string }
}

// connectDomain is the domain of errors that package gatehouseconnect sends, whose reasons
// are codes in capitals.
const connectDomain = "github.com/animalstore/gatehouse"

// readRefusal reads the body of a denial: the envelope of package apierror, problem
// details, or an error of package gatehouseconnect. A body of another kind is not an error.
func readRefusal(resp *http.Response) refusal {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if media != "application/json" && media != "application/problem+json" {
		return refusal{}
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // nothing is read of a part
	var content struct {
		Code, Message, Detail, Type string
		Details                     []connectDetail
	}
	// A member of another type is left empty, and the others are read.
	_ = json.Unmarshal(body, &content)
	r := refusal{code: apierror.Code(content.Code), message: content.Message}
	for _, d := range content.Details {
		if d.Debug.Domain == connectDomain {
			r.code = apierror.Code(strings.ToLower(d.Debug.Reason))
		}
	}
	if r.message == "" {
		r.message = content.Detail
	}
	r.banned = r.code == apierror.CodeAPIKeyBanned || r.code == apierror.CodeClientBanned ||
		strings.HasSuffix(content.Type, abnormalUsage)
	return r
}

// discard reads the rest of a short body, so that the connection can be used again,
// and closes it.
func discard(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, maxDrain)
	body.Close()
}
