package compatibility

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"strings"
)

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
		file, err := form.CreateFormFile("photo", "rex.png")
		if err != nil {
			c.t.Fatal(err)
		}
		_, _ = io.WriteString(file, large)
		_ = form.Close()
		c.do(http.MethodPost, "/", &body, "Content-Type", form.FormDataContentType())
	},
}}
