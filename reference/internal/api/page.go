package api

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"

	"github.com/animalstore/gatehouse/reference/internal/docpage"
	"github.com/animalstore/gatehouse/reference/internal/webpage"
)

// A page is a public file that needs no key. Its representations are created once.
type page struct {
	contentType    string
	policy         string // its Content-Security-Policy; "": that of the API
	plain, gzipped representation
}

type representation struct {
	body []byte
	etag string // strong, so each coding has its own (RFC 9110 section 8.8.3)
}

// registerPages puts the OpenAPI document on the site, and the page on which people
// read it.
func (a *api) registerPages(document []byte) error {
	files, err := docpage.New(document, docsPath)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := a.registerPage(f.Path, page{contentType: f.ContentType, policy: webpage.Policy}, f.Body); err != nil {
			return err
		}
	}
	return a.registerPage(documentPath, page{contentType: "application/json"}, document)
}

func (a *api) registerPage(path string, p page, body []byte) error {
	if err := p.represent(body); err != nil {
		return err
	}
	a.site.Handle(http.MethodGet+" "+path, a.errors.Handle(p.serve))
	a.site.Handle(http.MethodOptions+" "+path, options("GET, HEAD, OPTIONS"))
	return nil
}

// represent creates the representations.
func (p *page) represent(body []byte) error {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(body); err != nil {
		return fmt.Errorf("compress page: %w", err)
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("compress page: %w", err)
	}
	p.plain = representation{body, etagOf(body, "")}
	p.gzipped = representation{b.Bytes(), etagOf(b.Bytes(), "")}
	return nil
}

// serve answers GET and HEAD. Caches may store the page and must revalidate it.
func (p *page) serve(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Type", p.contentType)
	if p.policy != "" {
		h.Set("Content-Security-Policy", p.policy)
	}
	h.Add("Vary", "Accept-Encoding")
	chosen := p.plain
	if acceptsGzip(r.Header["Accept-Encoding"]) {
		chosen = p.gzipped
		h.Set("Content-Encoding", "gzip")
	}
	return represent(w, r, chosen.body, chosen.etag)
}
