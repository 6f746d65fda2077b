package gateway

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httputil"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/nilvalue"
	"github.com/animalstore/gatehouse/internal/response"
	"github.com/animalstore/gatehouse/middleware"
)

// New returns a handler that serves requests through a copy of proxy.
//
// The proxy must have Rewrite. It cannot have Director, since a client can remove header
// fields that a Director sets, and send X-Forwarded-For of its own. ModifyResponse gets
// the response as the backend sent it. If ErrorHandler is set, it answers in place of
// errs; nil as errs works.
//
// If Transport is nil, New makes one that keeps up to 100 idle connections to the
// backend, waits at most a minute for the header of a response, and does not decompress
// responses, which [http.DefaultTransport] does for clients that accept no compression.
//
// If the backend limits the gateway as a whole, use a Transport of package
// ratelimit/transport. While the limit is used up it sends nothing, and clients get 503 with
// Retry-After instead of a 429. With MaxWait: -1 no request waits in the gateway. Base is
// an [http.Transport], with DisableCompression for the reason above:
//
//	limits, err := transport.New(transport.Options{Base: base, MaxWait: -1})
//	...
//	backend, err := gateway.New(&httputil.ReverseProxy{Rewrite: rewrite, Transport: limits}, errs)
//
// Of a target that is a URL (RFC 9112 section 3.2.2) Rewrite gets the path and the query in
// Out. Trailers of the request do not pass, nor do informational responses that the backend
// sends before the 100 that a client asks for. The handler refuses targets without a path to
// check, such as * and http:x, and the method CONNECT. It also refuses paths with segments
// . or .., also if they are escaped: [http.ServeMux] takes /public/%2e%2e/admin for a path
// below /public/, and many backends for /admin. The Transport refuses methods that are
// malformed, which HTTP/2 lets pass, and for a backend that speaks HTTP/2 upgrades to other
// protocols than websocket, and longer headers than that accepts.
//
// The handler is safe for concurrent use. Limit bodies with [middleware.BodyLimit]:
// [http.MaxBytesHandler] sets a field of the response while another goroutine may send it.
func New(proxy *httputil.ReverseProxy, errs *apierror.Responder) (http.Handler, error) {
	switch {
	case proxy == nil:
		return nil, errors.New("gateway: New: the proxy must not be nil")
	case proxy.Rewrite == nil || proxy.Director != nil: //nolint:staticcheck // Director is refused
		return nil, errors.New("gateway: New: the proxy must have Rewrite and not Director, whose header fields a client can remove")
	case proxy.Transport != nil && nilvalue.In(proxy.Transport):
		return nil, fmt.Errorf("gateway: New: the Transport of the proxy must not be a nil %T", proxy.Transport)
	}
	h := &handler{proxy: *proxy, errs: errs}
	if h.proxy.Transport == nil {
		h.proxy.Transport = newTransport()
	}
	return h, nil
}

func newTransport() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport // the program has replaced it
	}
	t = t.Clone()
	t.MaxIdleConnsPerHost = 100
	t.ResponseHeaderTimeout = time.Minute
	t.DisableCompression = true
	return t
}

type handler struct {
	proxy httputil.ReverseProxy
	errs  *apierror.Responder
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{handler: h, Tracker: response.Track(w), r: r, header: w.Header(), set: maps.Clone(w.Header())}
	switch {
	case r.Method == http.MethodConnect, r.URL.Opaque != "", r.RequestURI == "*":
		x.fail(x, r, otherTarget)
		return
	case hasDotSegment(r.URL.Path):
		x.fail(x, r, dotSegments)
		return
	}
	// ReverseProxy sends the header as it is with each informational response, and
	// clears it after that.
	clear(x.header)
	defer func() {
		if !x.restored { // Rewrite or the transport has panicked
			x.restore()
		}
	}()
	p := h.proxy
	p.Rewrite, p.ModifyResponse, p.ErrorHandler = x.rewrite, x.modify, x.fail
	p.ServeHTTP(x, r)
}

// exchange is one request with its response, and the ResponseWriter of ReverseProxy.
type exchange struct {
	*handler
	*response.Tracker
	r         *http.Request
	header    http.Header // of the response
	set       http.Header // what middlewares have set in it
	restored  bool
	continued bool // 100 was passed on
	body      requestBody
	rewritten bool
}

func (x *exchange) rewrite(p *httputil.ProxyRequest) {
	x.rewritten = true
	toPath(p.Out.URL)
	p.Out.Trailer = nil // names of trailers, whose values ReverseProxy would not send
	if id := middleware.RequestIDFrom(x.r.Context()); id != "" {
		p.Out.Header["X-Request-Id"] = []string{id}
	}
	if !x.r.ProtoAtLeast(1, 1) || carriesRequests(p.Out.Header.Get("Upgrade")) { // RFC 9110 section 7.8
		for _, name := range []string{"Connection", "Upgrade", "Http2-Settings"} {
			p.Out.Header.Del(name)
		}
	}
	if p.Out.Body != nil && p.Out.Body != http.NoBody {
		x.body.ReadCloser = p.Out.Body
		p.Out.Body = &x.body
	}
	x.proxy.Rewrite(p)
}

// WriteHeader filters informational responses. An HTTP/1.0 client would take one for the
// response (RFC 9110 section 15.2). As long as the client of an upload waits for 100, reading
// the body writes that, in another goroutine, and net/http does not keep the two apart.
func (x *exchange) WriteHeader(status int) {
	if status < 200 {
		x.continued = x.continued || status == http.StatusContinue
		if !x.r.ProtoAtLeast(1, 1) || x.r.Header.Get("Expect") != "" && !x.continued {
			return
		}
		dropFraming(x.header)
		merge(maps.Clone(x.set), x.header)
	}
	x.Tracker.WriteHeader(status)
}

// modify prepares the header and that of the backend's response, which ReverseProxy then
// adds to it.
func (x *exchange) modify(resp *http.Response) error {
	if x.proxy.ModifyResponse != nil {
		if err := x.proxy.ModifyResponse(resp); err != nil {
			return err
		}
	}
	if s := resp.StatusCode; s < 200 && s != http.StatusSwitchingProtocols || s > 999 {
		return fmt.Errorf("gateway: the status of the response is %d", s) // net/http would panic, or send 200 after 1xx
	}
	x.restore()
	merge(x.header, resp.Header)
	x.filterTrailers(resp)
	return nil
}

// restore puts back what middlewares have set.
func (x *exchange) restore() {
	clear(x.header)
	maps.Copy(x.header, x.set)
	x.restored = true
}
