package transport

import (
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/deprecation"
)

// A LimitError says that a request was not served because of a limit, and that the
// Transport did not wait. [net/http.Client] wraps it:
//
//	var limited *transport.LimitError
//	if errors.As(err, &limited) {
//		return retryLater(limited.Until)
//	}
//
// It wraps [context.DeadlineExceeded] if the reason is the deadline of the request.
type LimitError struct {
	// Until is when the limit has room again, by the clock of this process: [time.Until] tells
	// how long to wait. A request at that time can still be refused if others use the limit.
	Until time.Time

	// Banned says that the server has banned the client.
	Banned bool

	// Status, Code and Message come from the response that named the limit: 429,
	// 403 or 503, or another status if that response was the last one before the limit
	// was reached. Code and Message are from its body, if that is the envelope of
	// package apierror or problem details, and else empty. Status is 0 if the limit is
	// Options.Plan.
	Status  int
	Code    apierror.Code
	Message string

	host   string
	reason string // why the request did not wait
	cause  error
}

// Error names the host, the time and the reason, but not the Message.
func (e *LimitError) Error() string {
	what := "limits this client"
	switch {
	case e.Banned:
		what = "has banned this client"
	case e.Status == 0:
		what = "is limited by Options.Plan"
	}
	answer := ""
	if e.Status != 0 {
		answer = fmt.Sprintf(" (%d", e.Status)
		if e.Code != "" {
			answer += " " + string(e.Code)
		}
		answer += ")"
	}
	return fmt.Sprintf("transport: %s %s until %s%s: %s", e.host, what, e.Until.UTC().Format(time.RFC3339), answer, e.reason)
}

// Unwrap returns [context.DeadlineExceeded] or nil.
func (e *LimitError) Unwrap() error { return e.cause }

// maxNotices bounds the notices that are remembered.
const maxNotices = 1000

// notices reports each notice of a deprecation once.
type notices struct {
	report func(*http.Request, deprecation.Notice)

	mu   sync.Mutex
	seen map[noticeKey]bool
}

type noticeKey struct {
	method, host string
	notice       deprecation.Notice
}

// read reports the notice of resp, if it has one that was not reported.
func (s *notices) read(r *http.Request, resp *http.Response) {
	if resp.Header["Deprecation"] == nil && resp.Header["Sunset"] == nil {
		return
	}
	// What was sent tells notices apart: a relative link resolves to another target for
	// each path.
	sent, ok, _ := deprecation.FromResponse(&http.Response{Header: resp.Header})
	if !ok || !s.add(noticeKey{r.Method, r.URL.Host, sent}) {
		return
	}
	// A link to a part of the same page is resolved to the whole URL, and the query of the
	// request can hold secrets.
	target := *r.URL
	target.RawQuery, target.ForceQuery = "", false
	notice, _, _ := deprecation.FromResponse(&http.Response{Header: resp.Header, Request: &http.Request{URL: &target}})
	s.report(r, notice)
}

// add reports whether the notice is new, and there is room to remember it.
func (s *notices) add(k noticeKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[k] || len(s.seen) >= maxNotices {
		return false
	}
	if s.seen == nil {
		s.seen = make(map[noticeKey]bool)
	}
	s.seen[k] = true
	return true
}

// logNotice is the report by default. The query is left out, since it may hold
// secrets.
func logNotice(r *http.Request, n deprecation.Notice) {
	attrs := []slog.Attr{slog.String("method", r.Method), slog.String("host", r.URL.Host), slog.String("path", r.URL.Path)}
	if !n.Since.IsZero() {
		attrs = append(attrs, slog.Time("since", n.Since))
	}
	if !n.Sunset.IsZero() {
		attrs = append(attrs, slog.Time("sunset", n.Sunset))
	}
	if n.Successor != "" {
		attrs = append(attrs, slog.String("successor", n.Successor))
	}
	slog.Default().LogAttrs(r.Context(), slog.LevelWarn, "called a deprecated operation", attrs...)
}
