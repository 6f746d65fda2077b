package api

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"sync"

	"github.com/animalstore/gatehouse/reference/internal/pages"
)

// A siteFile is a file that needs no key: the OpenAPI document, or one of the page /docs.
type siteFile struct {
	contentType string
	policy      string // its Content-Security-Policy; "": that of the API
	plain       representation
	gzipped     func() (representation, error) // compresses when it is called first
}

type representation struct {
	body []byte
	etag string // strong, so each coding has its own (RFC 9110 section 8.8.3)
}

// registerSite puts the OpenAPI document on the site, and the page on which people
// read it.
func (a *api) registerSite(document []byte) error {
	files, err := pages.Docs(document, docsPath)
	if err != nil {
		return err
	}
	for _, f := range files {
		a.registerFile(f.Path, newSiteFile(f.ContentType, pages.Policy, f.Body))
	}
	a.registerFile(documentPath, newSiteFile("application/json", "", document))
	return nil
}

func (a *api) registerFile(path string, f *siteFile) {
	a.site.Handle(http.MethodGet+" "+path, a.errors.Handle(f.serve))
	a.site.Handle(http.MethodOptions+" "+path, options("GET, HEAD, OPTIONS"))
}

func newSiteFile(contentType, policy string, body []byte) *siteFile {
	return &siteFile{
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
		return nil, fmt.Errorf("compress: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return b.Bytes(), nil
}

// serve answers GET and HEAD. Caches may store the file and must revalidate it.
func (f *siteFile) serve(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Type", f.contentType)
	if f.policy != "" {
		h.Set("Content-Security-Policy", f.policy)
	}
	h.Add("Vary", "Accept-Encoding")
	if !acceptsGzip(r.Header["Accept-Encoding"]) {
		return represent(w, r, f.plain.body, f.plain.etag)
	}
	zipped, err := f.gzipped()
	if err != nil {
		return err
	}
	h.Set("Content-Encoding", "gzip")
	return represent(w, r, zipped.body, zipped.etag)
}
