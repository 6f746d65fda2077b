package compatibility

import (
	"io"
	"net/http"
	"net/textproto"
	"strings"
)

// interims are responses before the final one.
var interims = []behaviour{
	{
		name:  "103 Early Hints",
		proof: [2]string{`interim status 103, Link ["</style.css>; rel=\"preload\""]`, `interim status 103, Link ["</style.css>; rel=\"preload\""]`},
		serve: func(_ *cell, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", `</style.css>; rel="preload"`)
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, "pets")
		},
	},
	{
		name:  "102 Processing, twice",
		proof: [2]string{"interim status 102", "interim status 102"},
		serve: func(_ *cell, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusProcessing)
			w.WriteHeader(http.StatusProcessing)
			w.WriteHeader(http.StatusNotFound)
		},
	},
	{
		name:  "100 Continue by a read",
		proof: [2]string{"the client was asked for its body", "the client was asked for its body"},
		serve: func(c *cell, w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			c.served("body %q, %s", body, outcome(err))
		},
		ask: expectContinue,
	},
	{
		name:  "an answer in place of 100 Continue",
		proof: [2]string{"the connection will be closed", "status 503"},
		serve: func(_ *cell, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		ask:   expectContinue,
	},
}

// expectContinue sends its body only if it is asked to.
func expectContinue(c *cell) {
	asked := &askedBody{Reader: strings.NewReader("pets")}
	c.do(http.MethodPost, "/", asked, "Expect", "100-continue")
	if asked.read {
		c.received("the client was asked for its body")
	}
}

type askedBody struct {
	io.Reader
	read bool
}

func (b *askedBody) Read(p []byte) (int, error) {
	b.read = true
	return b.Reader.Read(p)
}

// trailers are fields after a body.
var trailers = []behaviour{
	{
		name:  "announced trailers",
		proof: [2]string{"trailer X-Rows: 17", "trailer X-Rows: 17"},
		serve: func(_ *cell, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Rows")
			_, _ = io.WriteString(w, "pets")
			w.Header().Set("X-Rows", "17")
		},
	},
	{
		name:  "trailers by prefix",
		proof: [2]string{"trailer X-Rows: 17", "trailer X-Rows: 17"},
		serve: func(_ *cell, w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
			w.Header().Set(http.TrailerPrefix+"X-Rows", "17")
		},
	},
	{
		name:  "trailers of a request, announced",
		proof: [2]string{`trailers map[X-Rows:[17]]`, `trailers map[X-Rows:[17]]`},
		serve: noteTrailers,
		ask: func(c *cell) {
			body := &lateTrailer{Reader: strings.NewReader("pets")}
			r := c.request(http.MethodPost, "/", body)
			r.Trailer = http.Header{"X-Rows": nil}
			body.r = r
			c.whole(c.begin(r))
		},
	},
	{
		name:  "trailers of a request, not announced",
		proof: [2]string{`trailers map[X-Rows:[17]]`, ""},
		serve: noteTrailers,
		ask: func(c *cell) {
			c.raw("POST / HTTP/1.1", "Transfer-Encoding: chunked", "", "4", "pets", "0", "X-Rows: 17", "", "")
		},
	},
}

func noteTrailers(c *cell, _ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	c.served("trailers %v", map[string][]string(r.Trailer))
}

// lateTrailer sets the trailer at the end of the body.
type lateTrailer struct {
	io.Reader
	r *http.Request
}

func (b *lateTrailer) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		b.r.Trailer[textproto.CanonicalMIMEHeaderKey("X-Rows")] = []string{"17"}
	}
	return n, err
}
