package transport

import (
	"log/slog"
	"net/http"
	"sync"

	"github.com/animalstore/gatehouse/deprecation"
)

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
	sent, ok, _ := deprecation.FromHeader(resp.Header)
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
