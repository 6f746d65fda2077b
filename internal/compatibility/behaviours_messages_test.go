package compatibility

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"strings"

	"github.com/animalstore/gatehouse/internal/testcheck"
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

// requests are what the handler finds in its request.
var requests = []behaviour{
	{
		name:  "pattern and path values",
		proof: [2]string{"the pattern outside is GET /pets/{petId}", "the pattern outside is GET /pets/{petId}"},
		serve: func(c *cell, w http.ResponseWriter, r *http.Request) {
			mux := http.NewServeMux()
			mux.HandleFunc("GET /pets/{petId}", func(w http.ResponseWriter, r *http.Request) {
				c.served("%s, %s", r.Pattern, r.PathValue("petId"))
			})
			mux.ServeHTTP(w, r)
		},
		ask: func(c *cell) { c.do(http.MethodGet, "/pets/17", nil) },
	},
	{
		name:  "the context of net/http",
		proof: [2]string{"server true, address true", "server true, address true"},
		serve: func(c *cell, _ http.ResponseWriter, r *http.Request) {
			_, server := r.Context().Value(http.ServerContextKey).(*http.Server)
			_, address := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
			c.served("server %v, address %v, TLS %v, %s", server, address, r.TLS != nil, r.Proto)
		},
	},
	{
		name:  "a form",
		proof: [2]string{"name Rex", "name Rex"},
		serve: func(c *cell, _ http.ResponseWriter, r *http.Request) {
			c.served("name %s, page %s", r.PostFormValue("name"), r.FormValue("page"))
		},
		ask: func(c *cell) {
			c.do(http.MethodPost, "/?page=2", strings.NewReader("name=Rex"), "Content-Type", "application/x-www-form-urlencoded")
		},
	},
	{
		name:  "a body that is not read, and the next request",
		proof: [2]string{"the connection is used again", "the connection is used again"},
		serve: func(_ *cell, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		ask: func(c *cell) {
			c.do(http.MethodPost, "/", strings.NewReader("pets"))
			c.do(http.MethodGet, "/", nil)
		},
	},
	{
		name:  "a body that is closed unread",
		proof: [2]string{"close: no error, read: an error", "close: no error, read: an error"},
		serve: func(c *cell, _ http.ResponseWriter, r *http.Request) {
			closed := r.Body.Close()
			_, err := r.Body.Read(make([]byte, 1))
			c.served("close: %s, read: %s", outcome(closed), outcome(err))
		},
		ask: func(c *cell) { c.do(http.MethodPost, "/", strings.NewReader("pets")) },
	},
	{
		name:  "no body",
		proof: [2]string{"http.NoBody true", "http.NoBody false"},
		serve: func(c *cell, _ http.ResponseWriter, r *http.Request) {
			c.served("http.NoBody %v", r.Body == http.NoBody)
		},
	},
	{
		name:  "http.MaxBytesReader",
		proof: [2]string{"status 413", "status 413"},
		serve: func(c *cell, w http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 10))
			exceeded, ok := errors.AsType[*http.MaxBytesError](err)
			c.served("*http.MaxBytesError %v", ok && exceeded.Limit == 10)
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		},
		ask: func(c *cell) { c.do(http.MethodPost, "/", strings.NewReader(large[:100])) },
		// It closes the connection only if its ResponseWriter is that of net/http, which
		// no wrapper can be. See middleware.BodyLimit.
		unlike: "Connection",
	},
}

// forms have files that are too large for memory. observe counts those that are left.
var forms = []behaviour{{
	name:   "temporary files of a multipart form",
	closes: true,
	proof:  [2]string{"a temporary file true", "a temporary file true"},
	serve: func(c *cell, w http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(0); err != nil {
			c.t.Error(err)
			return
		}
		f, header, err := r.FormFile("photo")
		if err != nil {
			c.t.Error(err)
			return
		}
		defer f.Close()
		_, onDisk := f.(*os.File)
		c.served("%s has %d bytes, a temporary file %v", header.Filename, header.Size, onDisk)
	},
	ask: func(c *cell) {
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		file := testcheck.Must(form.CreateFormFile("photo", "rex.png"))
		_, _ = io.WriteString(file, large)
		_ = form.Close()
		c.do(http.MethodPost, "/", &body, "Content-Type", form.FormDataContentType())
	},
}}
