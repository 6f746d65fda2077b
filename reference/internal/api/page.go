package api

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"sync"

	"github.com/animalstore/gatehouse/reference/internal/docpage"
	"github.com/animalstore/gatehouse/reference/internal/webpage"
)

// A page is a public file that needs no key.
type page struct {
	contentType string
	policy      string // its Content-Security-Policy; "": that of the API
	plain       representation
	gzipped     func() (representation, error) // compresses when it is called first
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
		a.registerPage(f.Path, newPage(f.ContentType, webpage.Policy, f.Body))
	}
	a.registerPage(documentPath, newPage("application/json", "", document))
	return nil
}

func (a *api) registerPage(path string, p *page) {
	a.site.Handle(http.MethodGet+" "+path, a.errors.Handle(p.serve))
	a.site.Handle(http.MethodOptions+" "+path, options("GET, HEAD, OPTIONS"))
}

func newPage(contentType, policy string, body []byte) *page {
	return &page{
		contentType: contentType, policy: policy,
		plain: representation{body, etagOf(body, "")},
		gzipped: sync.OnceValues(func() (representation, error) {
			zipped, err := compress(body)
			return representation{zipped, etagOf(zipped, "")}, err
		}),
	}
}

func compress(body []byte) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(body); err != nil {
		return nil, fmt.Errorf("compress page: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("compress page: %w", err)
	}
	return b.Bytes(), nil
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
	if !acceptsGzip(r.Header["Accept-Encoding"]) {
		return represent(w, r, p.plain.body, p.plain.etag)
	}
	zipped, err := p.gzipped()
	if err != nil {
		return err
	}
	h.Set("Content-Encoding", "gzip")
	return represent(w, r, zipped.body, zipped.etag)
}
