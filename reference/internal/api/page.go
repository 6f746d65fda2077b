package api

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
)

// A page is a public document that needs no key. Its representations are created once.
type page struct {
	plain, gzipped representation
}

type representation struct {
	body []byte
	etag string // strong, so each coding has its own (RFC 9110 section 8.8.3)
}

func newPage(body []byte) (*page, error) {
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
	return &page{
		plain:   representation{body, etagOf(body, "")},
		gzipped: representation{b.Bytes(), etagOf(b.Bytes(), "")},
	}, nil
}

// serve answers GET and HEAD. Caches may store the page and must revalidate it.
func (p *page) serve(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Add("Vary", "Accept-Encoding")
	chosen := p.plain
	if acceptsGzip(r.Header["Accept-Encoding"]) {
		chosen = p.gzipped
		h.Set("Content-Encoding", "gzip")
	}
	return represent(w, r, chosen.body, chosen.etag)
}
