package transport

import (
	"cmp"
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

// judge returns what a response that arrived at the time now says of the next requests
// of its key, and whether it refused its own: that was not served and may be sent again.
// If a refused one names no time to wait, the state has no end.
func judge(resp *http.Response, now time.Time) (s state, refused bool) {
	server := serverTime(resp.Header, now)
	after, named := retryAfter(resp.Header, server)
	var l limits
	if resp.Header.Get("Age") == "" { // else it comes from a cache, and its fields are old
		l = readLimits(resp.Header, server)
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		refused = true
	case http.StatusForbidden:
		// GitHub's limits. A 403 for another reason that came with the last unit looks
		// the same, and is known after the wait.
		refused = named || l.reset > 0
	case http.StatusServiceUnavailable:
		refused = named
	}
	wait, probe := l.reset, firstProbe
	if refused {
		probe = probeInterval
		s.banned = resp.Header.Get(fieldBanned) != ""
		switch {
		case named:
			wait = max(after, shortestPause)
		case l.present && !l.empty:
			wait = unknownPause
		}
	}
	s.status, s.probe = resp.StatusCode, now.Add(probe)
	if wait > 0 {
		s.until = now.Add(wait)
	}
	return s, refused
}

// fieldBanned is on a 429 for a ban, whatever its body is: see limit.HeaderSet.Set.
const fieldBanned = "X-Ratelimit-Banned"

// abnormalUsage is the problem type of a ban (draft-ietf-httpapi-ratelimit-headers-11
// section 5.3).
const abnormalUsage = "#abnormal-usage-detected"

// readBody adds what the body of a refusal says, if it is the envelope of package apierror
// or problem details. A body of another kind is not an error.
func (s *state) readBody(resp *http.Response) {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if media != "application/json" && media != "application/problem+json" {
		return
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // nothing is read of a part
	var content struct{ Code, Message, Detail, Type string }
	// A member of another type is left empty, and the others are read.
	_ = json.Unmarshal(body, &content)
	s.code, s.message = apierror.Code(content.Code), cmp.Or(content.Message, content.Detail)
	s.banned = s.banned || s.code == "api_key_banned" || s.code == "client_banned" ||
		strings.HasSuffix(content.Type, abnormalUsage)
}

// discard reads the rest of a short body, so that the connection can be used again,
// and closes it.
func discard(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, maxDrain)
	body.Close()
}
