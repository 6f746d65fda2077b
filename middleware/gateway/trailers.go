package gateway

import (
	"io"
	"net/http"
)

// filterTrailers removes Alt-Svc, framing, and the trailers of the backend that would repeat
// or contradict a field of middlewares. Those that the backend has not announced are known
// only at the end of the body.
func (x *exchange) filterTrailers(resp *http.Response) {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return
	}
	if len(resp.Trailer) == 0 && resp.ProtoMajor == 1 && resp.ContentLength >= 0 {
		return // no trailers can follow (RFC 9112 section 7.1.2)
	}
	t := &trailerFilter{ReadCloser: resp.Body, resp: resp, set: x.set}
	t.filter()
	resp.Body = t
}

type trailerFilter struct {
	io.ReadCloser
	resp *http.Response
	set  http.Header // of middlewares
}

func (t *trailerFilter) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if err == io.EOF {
		t.filter()
	}
	return n, err
}

func (t *trailerFilter) filter() {
	if len(t.resp.Trailer) == 0 {
		return
	}
	dropFraming(t.resp.Trailer)
	set := groupsOf(t.set)
	for name := range t.resp.Trailer {
		switch g := groupOf(name); {
		case g == shared:
		case g == hidden, g != alone && set[g], g == alone && t.set[name] != nil:
			delete(t.resp.Trailer, name)
		}
	}
}
