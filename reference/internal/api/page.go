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
	form
	contentType []string
	link        []string // nil: none
	varies      bool     // with Accept-Encoding, also while it is not compressed

	gzipTag []string             // its ETag if it is compressed; nil: it never is
	gzipped func() (form, error) // the compressed form
}

// A form of a page is the page as it is, or compressed. Each has its own ETag (RFC 9110
// section 8.8.3.3).
type form struct {
	body   []byte
	length []string
	etag   []string // strong
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
	p := &page{form: form{body, lengthOf(body), []string{etagOf(body, link)}}, contentType: jsonType}
	if link != "" {
		p.link = []string{link}
	}
	return p
}

func lengthOf(body []byte) []string { return []string{strconv.Itoa(len(body))} }

// compressed makes p a page that is compressed for clients that accept gzip, when it is first
// sent to one. The ETag of the compressed form is known without compression, so that a 304 does
// not cost any. Servers of different versions could compress to different bytes, but that only
// matters for ranges, which are not served.
func (p *page) compressed() *page {
	p.gzipTag = []string{strings.TrimSuffix(p.etag[0], `"`) + `-gzip"`}
	p.gzipped = sync.OnceValues(func() (form, error) {
		body, err := compress(p.body)
		return form{body, lengthOf(body), p.gzipTag}, err
	})
	return p
}

// zippers are reused, because they are large. They prefer speed, because most pages are made for
// one request or a few.
var zippers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // fails only for another level
	return z
}}

// compress writes to memory rather than to the client, so that a slow client does not keep
// the zipper. Pages keep what it returns.
func compress(body []byte) ([]byte, error) {
	z := zippers.Get().(*gzip.Writer)
	defer zippers.Put(z)
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

// size returns the most memory that the page can take, in bytes.
func (p *page) size() int {
	const fixed = 1 << 10 // the page itself, its header fields, its place in a map
	if p.gzipped != nil {
		return 2*cap(p.body) + fixed
	}
	return cap(p.body) + fixed
}

// serve answers GET or HEAD with the form of the page that the client prefers, or with 304
// if the client has it.
func (p *page) serve(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	switch {
	case !p.varies:
	case h["Vary"] == nil:
		h["Vary"] = varyEncoding
	default:
		h.Add("Vary", "Accept-Encoding")
	}
	if p.link != nil {
		h["Link"] = p.link
	}
	etag := p.etag
	zip := p.gzipped != nil && acceptsGzip(r.Header["Accept-Encoding"])
	if zip {
		etag = p.gzipTag
	}
	if hasPreconditions(r) {
		answered, err := notModified(w, r, etag[0])
		if answered || err != nil {
			return err
		}
	}
	sent := p.form
	if zip {
		var err error
		if sent, err = p.gzipped(); err != nil {
			return err
		}
		h["Content-Encoding"] = gzipCoding
	}
	h["Etag"] = sent.etag
	h["Content-Type"] = p.contentType
	h["Content-Length"] = sent.length
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(sent.body) // fails only if the client has disconnected
	}
	return nil
}
