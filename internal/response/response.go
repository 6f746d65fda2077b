// Package response tells what has become of a response: whether it has begun,
// and with which status. It serves the packages of this module that must know
// after a handler has run.
package response

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
)

// Tracker is a ResponseWriter that knows whether the response has begun, that
// is, whether a final status is on its way or the connection is in other hands.
//
// It is not pooled. A goroutine that outlives its handler can hold on to it, and
// would write into somebody else's response; 32 bytes a request are cheap.
//
// [http.MaxBytesReader] closes the connection of an oversized request only if it
// is given net/http's own writer, which no wrapper can stand in for: who limits
// bodies sets Connection: close with the 413.
type Tracker struct {
	rw     http.ResponseWriter
	status int
	bytes  int64
}

// Track returns w itself if it is a Tracker, and one around it otherwise. It
// does not search below other wrappers: what these have buffered, a Tracker
// underneath knows nothing of.
func Track(w http.ResponseWriter) *Tracker {
	if t, ok := w.(*Tracker); ok {
		return t
	}
	return &Tracker{rw: w}
}

// Begun reports whether the response has begun.
func (t *Tracker) Begun() bool { return t.status != 0 }

// Status returns the final status, 101 if the connection was hijacked, or 0 if
// the response has not begun.
func (t *Tracker) Status() int { return t.status }

// Bytes returns how much of the body was written.
func (t *Tracker) Bytes() int64 { return t.bytes }

// begin records the status of a response that begins now.
func (t *Tracker) begin(status int) {
	if t.status == 0 {
		t.status = status
	}
}

// Unwrap serves [http.ResponseController].
func (t *Tracker) Unwrap() http.ResponseWriter { return t.rw }

// Header implements [http.ResponseWriter].
func (t *Tracker) Header() http.Header { return t.rw.Header() }

// WriteHeader lets informational responses pass (RFC 9110 section 15.2): the
// final one is yet to come. After 101 there is none.
func (t *Tracker) WriteHeader(status int) {
	t.rw.WriteHeader(status) // first, since it panics if the status is none
	if status >= 200 || status == http.StatusSwitchingProtocols {
		t.begin(status)
	}
}

// Write implements [http.ResponseWriter].
func (t *Tracker) Write(p []byte) (int, error) {
	t.begin(http.StatusOK)
	n, err := t.rw.Write(p)
	t.bytes += int64(n)
	return n, err
}

// WriteString saves [io.WriteString] a copy.
func (t *Tracker) WriteString(s string) (int, error) {
	t.begin(http.StatusOK)
	n, err := io.WriteString(t.rw, s)
	t.bytes += int64(n)
	return n, err
}

// ReadFrom keeps sendfile within the reach of [io.Copy].
func (t *Tracker) ReadFrom(src io.Reader) (int64, error) {
	before := t.status
	t.begin(http.StatusOK) // should src panic midway
	n, err := io.Copy(t.rw, src)
	if n == 0 {
		t.status = before // src failed at once or was empty, and net/http has written nothing
	}
	t.bytes += n
	return n, err
}

// Flush serves those who ask for an [http.Flusher].
func (t *Tracker) Flush() { _ = t.FlushError() }

// FlushError serves [http.ResponseController]. It begins the response.
func (t *Tracker) FlushError() error {
	err := http.NewResponseController(t.rw).Flush()
	if !errors.Is(err, http.ErrNotSupported) {
		t.begin(http.StatusOK)
	}
	return err
}

// Hijack is here rather than left to Unwrap since nothing can be answered after
// it.
func (t *Tracker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(t.rw).Hijack()
	if err == nil {
		t.begin(http.StatusSwitchingProtocols)
	}
	return conn, rw, err
}
