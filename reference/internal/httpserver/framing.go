package httpserver

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"sync/atomic"
)

// A framing looks for requests with both Content-Length and Transfer-Encoding in
// the bytes of a client. After such a request the connection must be closed, because a
// proxy in front may have read a different end of it (RFC 9112 section 6.1). net/http
// removes Content-Length from such a request before a handler sees it, and keeps the
// connection open.
//
// It reads lines and does not know where bodies begin. So it cannot disagree with
// net/http about the end of a request, and it misses no header section. A body with
// such lines closes a connection unnecessarily, which does no harm.
type framing struct {
	line     [len(transferEncoding)]byte // the beginning of the line, in lower case
	n        int                         // length of the line, at most one more than len(line)
	chunked  bool                        // Transfer-Encoding since the last empty line
	measured bool                        // Content-Length since the last empty line

	ambiguous atomic.Bool // there was a section with both
	encoded   atomic.Bool // there was one with Transfer-Encoding
}

const (
	transferEncoding = "transfer-encoding:"
	contentLength    = "content-length:"
)

// scan takes the next bytes that the client sent.
func (f *framing) scan(p []byte) {
	for len(p) > 0 {
		if f.n > len(f.line) { // the rest of the line does not matter
			end := bytes.IndexByte(p, '\n')
			if end < 0 {
				return
			}
			p = p[end:]
		}
		f.next(p[0])
		p = p[1:]
	}
}

func (f *framing) next(b byte) {
	switch {
	case b == '\n':
		if f.n == 0 || f.n == 1 && f.line[0] == '\r' {
			f.chunked, f.measured = false, false
		}
		f.n = 0
		return
	case f.n >= len(f.line):
		f.n = len(f.line) + 1
		return
	case 'A' <= b && b <= 'Z':
		b += 'a' - 'A'
	}
	f.line[f.n] = b
	f.n++
	if b != ':' {
		return
	}
	switch string(f.line[:f.n]) {
	case transferEncoding:
		f.chunked = true
		f.encoded.Store(true)
	case contentLength:
		f.measured = true
	}
	if f.chunked && f.measured {
		f.ambiguous.Store(true)
	}
	f.n = len(f.line) + 1
}

type framingKey struct{}

// withFraming is for [http.Server.ConnContext].
func withFraming(ctx context.Context, c net.Conn) context.Context {
	if limited, ok := c.(*limitedConn); ok { // not in TLS
		return context.WithValue(ctx, framingKey{}, &limited.framing)
	}
	return ctx
}

// endsAmbiguously reports whether the connection must be closed after the response to r.
// HTTP/1.0 has no Transfer-Encoding, and net/http ignores it there.
func endsAmbiguously(r *http.Request) bool {
	f, ok := r.Context().Value(framingKey{}).(*framing)
	return ok && (f.ambiguous.Load() || f.encoded.Load() && !r.ProtoAtLeast(1, 1))
}
