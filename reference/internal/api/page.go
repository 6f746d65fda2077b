package api

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// A page is the response to a read: a list, a pet, or a file of the site. It is made once
// and may answer many requests at once, so it is never changed. Its values of header fields
// have no spare capacity: a handler that adds a value to a field gets a copy.
type page struct {
	body        []byte
	tag         string // strong
	contentType []string
	etag        []string
	length      []string
	link        []string // nil: none

	gzipped func() (zipped, error) // nil: the page is not compressed
}

// zipped is the compressed form of a page.
type zipped struct {
	body   []byte
	length []string
}

// The values of header fields of many pages.
var (
	jsonType     = []string{"application/json"}
	varyEncoding = []string{"Accept-Encoding"}
	gzipCoding   = []string{"gzip"}
)

// newPage returns a page of JSON. The validator changes with the link too: otherwise a
// client that has the last page of a list would not notice when another one follows it.
func newPage(body []byte, link string) *page {
	p := &page{body: body, contentType: jsonType, tag: etagOf(body, link), length: lengthOf(body)}
	p.etag = []string{p.tag}
	if link != "" {
		p.link = []string{link}
	}
	return p
}

func lengthOf(body []byte) []string { return []string{strconv.Itoa(len(body))} }

// compressed has the page compressed for clients that accept that, when it is first asked
// for.
func (p *page) compressed(compress func(body []byte) ([]byte, error)) *page {
	p.gzipped = sync.OnceValues(func() (zipped, error) {
		body, err := compress(p.body)
		return zipped{body, lengthOf(body)}, err
	})
	return p
}

// zippers are large, and made once for many bodies.
var zippers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // fails only for another level
	return z
}}

// compressFast is for pages that are made for one request or a few.
func compressFast(body []byte) ([]byte, error) {
	z := zippers.Get().(*gzip.Writer)
	defer zippers.Put(z)
	return compress(z, body)
}

// compressWell is for pages that never change.
func compressWell(body []byte) ([]byte, error) {
	z, err := gzip.NewWriterLevel(nil, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	return compress(z, body)
}

// compress writes to memory rather than to the client, so that a slow client does not keep
// the zipper. Pages keep what it returns.
func compress(z *gzip.Writer, body []byte) ([]byte, error) {
	var b bytes.Buffer
	z.Reset(&b)
	if _, err := z.Write(body); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return bytes.Clone(b.Bytes()), nil // without spare memory
}

// size returns the memory that the page takes at most, in bytes.
func (p *page) size() int {
	const fixed = 1 << 10 // the page itself, its header fields, its place in a map
	if p.gzipped != nil {
		return 2*cap(p.body) + fixed
	}
	return cap(p.body) + fixed
}

// isCompressed reports whether the client of r gets the compressed form.
func (p *page) isCompressed(r *http.Request) bool {
	return p.gzipped != nil && acceptsGzip(r.Header["Accept-Encoding"])
}

// chosenETag returns the ETag of the form that the client of r gets: each has its own (RFC
// 9110 section 8.8.3.3). That of the compressed form is known without compression, so that
// a 304 costs none. Servers of different versions could compress to different bytes. That
// would matter for ranges, which are not served.
func (p *page) chosenETag(r *http.Request) string {
	if p.isCompressed(r) {
		return strings.TrimSuffix(p.tag, `"`) + `-gzip"`
	}
	return p.tag
}

// serveEither answers GET or HEAD with the form of the page that the client prefers.
func (p *page) serveEither(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	if h["Vary"] == nil {
		h["Vary"] = varyEncoding
	} else {
		h.Add("Vary", "Accept-Encoding")
	}
	if p.link != nil {
		h["Link"] = p.link
	}
	if !p.isCompressed(r) {
		return p.serve(w, r)
	}
	answered, err := notModified(w, r, p.chosenETag(r))
	if answered || err != nil {
		return err
	}
	z, err := p.gzipped()
	if err != nil {
		return err
	}
	h["Content-Encoding"] = gzipCoding
	p.send(w, r, z.body, z.length)
	return nil
}

// serve answers GET or HEAD with the page, or with 304 if the client has it.
func (p *page) serve(w http.ResponseWriter, r *http.Request) error {
	if hasPreconditions(r) {
		answered, err := notModified(w, r, p.tag)
		if answered || err != nil {
			return err
		}
	}
	w.Header()["Etag"] = p.etag
	p.send(w, r, p.body, p.length)
	return nil
}

func (p *page) send(w http.ResponseWriter, r *http.Request, body []byte, length []string) {
	h := w.Header()
	h["Content-Type"] = p.contentType
	h["Content-Length"] = length
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // fails only if the client has disconnected
	}
}
