package httpserver

import (
	"io"
	"net/http"
	"strings"
	"time"
)

// A body notes whether it was read to its end.
type body struct {
	io.ReadCloser
	whole bool
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.whole = b.whole || err == io.EOF
	return n, err
}

// serveBody serves a request of HTTP/1 with a body. If the handler answers without reading
// all of it, as it does when it refuses a request, net/http would wait for the rest before it
// sends the response, so that a slow body would keep the connection for as long as it likes.
// Here the response is sent at once, and the connection closes unless the rest is there
// already.
func serveBody(h http.Handler, w http.ResponseWriter, r *http.Request) {
	b := &body{ReadCloser: r.Body}
	r.Body = b
	c := http.NewResponseController(w)
	_ = c.EnableFullDuplex() // so that a response of any size is sent before the body is read
	h.ServeHTTP(w, r)
	r.Body = b.ReadCloser
	if b.whole {
		return
	}
	_ = c.SetReadDeadline(time.Unix(1, 0)) // what is there can be read
	if r.Header.Get("Expect") == "" {      // or reading would ask for the body
		_, _ = io.Copy(io.Discard, b)
	}
	if !b.whole {
		closeAfterwards(w)
	}
}

// closeAfterwards closes the connection after the response, gently: net/http then waits for
// half a second, so that the client reads the response before it notices. Only a body over
// its limit does that.
func closeAfterwards(w http.ResponseWriter) {
	tooLarge := http.MaxBytesReader(w, io.NopCloser(strings.NewReader("x")), 0)
	_, _ = tooLarge.Read(make([]byte, 1))
}
