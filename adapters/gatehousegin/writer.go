package gatehousegin

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"
)

// notWritten is the Size of a response that has not begun, as in Gin.
const notWritten = -1

// writer is the gin.ResponseWriter around the ResponseWriter that a middleware passes on.
// Like the writer of Gin, it keeps the status until the response begins.
type writer struct {
	http.ResponseWriter
	gin    gin.ResponseWriter // outside the middlewares
	status int
	size   int
}

var _ gin.ResponseWriter = (*writer)(nil)

// Unwrap is for [http.ResponseController].
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) Status() int   { return w.status }
func (w *writer) Size() int     { return w.size }
func (w *writer) Written() bool { return w.size != notWritten }

func (w *writer) WriteHeader(status int) {
	if status > 0 && !w.Written() {
		w.status = status
	}
}

func (w *writer) WriteHeaderNow() {
	if !w.Written() {
		w.size = 0
		w.ResponseWriter.WriteHeader(w.status)
	}
}

// passStatus tells the middlewares the status of a response without a body, which Gin
// sends later. 200 is what they expect.
func (w *writer) passStatus() {
	if !w.Written() && w.status != http.StatusOK {
		w.ResponseWriter.WriteHeader(w.status)
	}
}

func (w *writer) Write(p []byte) (int, error) {
	w.WriteHeaderNow()
	n, err := w.ResponseWriter.Write(p)
	w.size += n
	return n, err
}

func (w *writer) WriteString(s string) (int, error) {
	w.WriteHeaderNow()
	n, err := io.WriteString(w.ResponseWriter, s)
	w.size += n
	return n, err
}

func (w *writer) Flush() { _ = w.FlushError() }

// FlushError is for [http.ResponseController].
func (w *writer) FlushError() error {
	w.WriteHeaderNow()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack is refused once a part of the body was written, even if a middleware further out
// still holds that back.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.size > 0 {
		return nil, nil, errors.New("gatehousegin: the connection cannot be hijacked: a part of the body is written")
	}
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.size = max(w.size, 0)
	}
	return conn, rw, err
}

// CloseNotify and Pusher do not concern the response, so the writer of Gin serves them.

func (w *writer) CloseNotify() <-chan bool { return w.gin.CloseNotify() }
func (w *writer) Pusher() http.Pusher      { return w.gin.Pusher() }
