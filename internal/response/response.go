// Package response tracks a response: whether it has begun, its status, and how many
// bytes of its body were written. It is for packages of this module that need this
// after a handler has run, or change the header just before it is sent. Services use
// middleware.TrackResponse.
package response

import (
	"bufio"
	"errors"
	"io"
	"mime/multipart"
	"net"
	"net/http"
)

// RequestKey is the key of the *http.Request in the context of a bearer verify function.
type RequestKey struct{}

// Tracker is a ResponseWriter that knows whether the response has begun: a final status
// was sent, or the connection was hijacked.
//
// It is not pooled: a goroutine that outlives its handler may keep it, and would write
// into the response to another request.
//
// [http.MaxBytesReader] closes the connection of an oversized request only if it
// is given net/http's own writer. A handler that limits bodies inside a Tracker must set
// Connection: close with the 413.
type Tracker struct {
	rw     http.ResponseWriter
	status int
	bytes  int64
	failed bool
	editor Editor // nil if none
}

// An Editor changes the header of a response just before it is sent. It may be
// called several times and must have the same effect as once. It must be
// comparable.
type Editor interface {
	EditHeader(h http.Header)
}

// Track returns w itself if it is a Tracker, and a Tracker around w otherwise. It does
// not unwrap other ResponseWriters: a Tracker inside them does not know what they have
// buffered.
func Track(w http.ResponseWriter) *Tracker {
	if t, ok := w.(*Tracker); ok {
		return t
	}
	return &Tracker{rw: w}
}

// Edit returns a Tracker around w that calls e before the final header is sent.
// Once the handler has run, [Tracker.Finish] must be called.
func Edit(w http.ResponseWriter, e Editor) *Tracker {
	if t, ok := w.(*Tracker); ok && t.editor == e {
		return t
	}
	return &Tracker{rw: w, editor: e}
}

// Finish calls the Editor if the response has not begun, since net/http or an outer
// handler will then write the header.
func (t *Tracker) Finish() {
	if t.editor != nil && t.status == 0 {
		t.editor.EditHeader(t.rw.Header())
	}
}

// Begun reports whether the response has begun.
func (t *Tracker) Begun() bool { return t.status != 0 }

// Status returns the final status, 101 if the connection was hijacked, or 0 if
// the response has not begun.
func (t *Tracker) Status() int { return t.status }

// Bytes returns how much of the body was written.
func (t *Tracker) Bytes() int64 { return t.bytes }

// begin records the status of a response that begins now without one.
func (t *Tracker) begin() {
	if t.status == 0 {
		t.Finish()
		t.status = http.StatusOK
	}
}

// Unwrap is for [http.ResponseController].
func (t *Tracker) Unwrap() http.ResponseWriter { return t.rw }

// Header implements [http.ResponseWriter].
func (t *Tracker) Header() http.Header { return t.rw.Header() }

// WriteHeader lets informational responses pass (RFC 9110 section 15.2): the
// final one follows, except after 101.
func (t *Tracker) WriteHeader(status int) {
	final := status >= 200 || status == http.StatusSwitchingProtocols
	if final {
		t.Finish()
	}
	t.rw.WriteHeader(status) // first, since it panics on an invalid status
	if final && t.status == 0 {
		t.status = status
	}
}

// Write implements [http.ResponseWriter].
func (t *Tracker) Write(p []byte) (int, error) {
	t.begin()
	n, err := t.rw.Write(p)
	return n, t.wrote(int64(n), err)
}

// WriteString saves [io.WriteString] a copy of s.
func (t *Tracker) WriteString(s string) (int, error) {
	t.begin()
	n, err := io.WriteString(t.rw, s)
	return n, t.wrote(int64(n), err)
}

// ReadFrom lets [io.Copy] use sendfile.
func (t *Tracker) ReadFrom(src io.Reader) (int64, error) {
	before := t.status
	t.begin() // before the copy, since src may panic
	n, err := io.Copy(t.rw, src)
	if n == 0 {
		t.status = before // src was empty or failed immediately, and net/http has written nothing
	}
	return n, t.wrote(n, err)
}

// wrote notes the end of a write, and returns err.
func (t *Tracker) wrote(n int64, err error) error {
	t.bytes += n
	t.failed = t.failed || err != nil
	return err
}

// Failed reports whether a write or a flush has failed, or the source of ReadFrom.
func (t *Tracker) Failed() bool { return t.failed }

// Flush implements [http.Flusher].
func (t *Tracker) Flush() { _ = t.FlushError() }

// FlushError is for [http.ResponseController]. It begins the response.
func (t *Tracker) FlushError() error {
	t.Finish()
	err := http.NewResponseController(t.rw).Flush()
	if !errors.Is(err, http.ErrNotSupported) {
		t.begin()
		_ = t.wrote(0, err)
	}
	return err
}

// Hijack is implemented, rather than left to Unwrap, because the response has begun
// after it.
func (t *Tracker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(t.rw).Hijack()
	if err == nil && t.status == 0 {
		t.status = http.StatusSwitchingProtocols
	}
	return conn, rw, err
}

// below returns the first ResponseWriter under t that implements T. It looks through
// those that have an Unwrap method, as [http.ResponseController] does.
func below[T any](t *Tracker) (found T, ok bool) {
	for w := t.rw; ; {
		if found, ok = w.(T); ok {
			return found, true
		}
		u, wraps := w.(interface{ Unwrap() http.ResponseWriter })
		if !wraps {
			return found, false
		}
		w = u.Unwrap()
	}
}

// Push implements [http.Pusher], which ResponseController does not know. It returns
// [http.ErrNotSupported] over HTTP/1, and if the client takes no pushes.
func (t *Tracker) Push(target string, opts *http.PushOptions) error {
	if p, ok := below[http.Pusher](t); ok {
		return p.Push(target, opts)
	}
	return http.ErrNotSupported
}

// CloseNotify implements http.CloseNotifier. The context of a request is better, but
// Context.Stream of gin panics without CloseNotify. The channel never receives if no
// ResponseWriter below has one.
func (t *Tracker) CloseNotify() <-chan bool {
	type notifier interface{ CloseNotify() <-chan bool } // http.CloseNotifier is deprecated
	if n, ok := below[notifier](t); ok {
		return n.CloseNotify()
	}
	return nil
}

// ServeCopy serves inner, a copy of outer such as [http.Request.WithContext] makes.
// It then does for outer what net/http and outer handlers would not see: it copies
// the route that a ServeMux has set, and removes temporary files, also if next
// panics. The inner request gets the trailers of the outer one.
func ServeCopy(next http.Handler, w http.ResponseWriter, outer, inner *http.Request) {
	ShareTrailers(outer)
	if inner.Trailer == nil {
		inner.Trailer = outer.Trailer
	}
	defer func(before *multipart.Form) {
		outer.Pattern = inner.Pattern
		RemoveFiles(inner, before)
	}(outer.MultipartForm)
	next.ServeHTTP(w, inner)
}

// RemoveFiles removes the temporary files of a multipart form that was parsed
// since r.MultipartForm was before. It is deferred by handlers after which
// net/http may not do it: net/http removes only the files of the request that it
// made itself, not of a copy, and none at all if a handler panics.
func RemoveFiles(r *http.Request, before *multipart.Form) {
	if form := r.MultipartForm; form != nil && form != before {
		_ = form.RemoveAll() // what cannot be removed is left to the system
	}
}

// ShareTrailers prepares r for being copied. At the end of a chunked body net/http adds
// trailers that the client has not announced to the map of its own request, or makes one,
// which a copy would lack. ShareTrailers makes it before.
func ShareTrailers(r *http.Request) {
	if r.Trailer == nil && r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
		r.Trailer = make(http.Header)
	}
}
