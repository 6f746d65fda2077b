package api

import (
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// A petPage is the response to a read of pets: a list, or one pet. It is made once and
// may answer many requests at once, so it is never changed. Its values of header fields
// have no spare capacity: a handler that adds a value to a field gets a copy.
type petPage struct {
	body   []byte
	tag    string
	etag   []string
	length []string
	link   []string // nil: none

	gzipped func() (zippedPage, error) // nil: the page is not compressed
}

// A zippedPage is the compressed form of a page.
type zippedPage struct {
	body   []byte
	length []string
}

// The values of header fields of all pages.
var (
	jsonType     = []string{"application/json"}
	varyEncoding = []string{"Accept-Encoding"}
	gzipCoding   = []string{"gzip"}
)

// newListPage returns the page for a query that found these pets.
func (a *api) newListPage(q store.ListQuery, pets []store.Pet, more bool) (*petPage, error) {
	body, err := encodePets(pets)
	if err != nil {
		return nil, err
	}
	p := &petPage{body: body}
	link := ""
	if more && len(pets) > 0 {
		link = nextLink(q, pets[len(pets)-1].ID)
		p.link = []string{link}
	}
	// The validator changes with the link too: otherwise a client that has the last page
	// would not notice when another one follows it.
	p.fill(etagOf(body, link))
	if len(body) >= minCompressed {
		p.gzipped = sync.OnceValues(func() (zippedPage, error) {
			zipped, err := a.gzip.compress(body)
			return zippedPage{zipped, lengthOf(zipped)}, err
		})
	}
	return p, nil
}

// newPetPage returns the page of one pet.
func newPetPage(stored store.Pet) (*petPage, error) {
	body, err := encodePet(stored)
	if err != nil {
		return nil, err
	}
	p := &petPage{body: body}
	p.fill(etagOf(body, ""))
	return p, nil
}

func (p *petPage) fill(tag string) {
	p.tag, p.etag, p.length = tag, []string{tag}, lengthOf(p.body)
}

func lengthOf(body []byte) []string { return []string{strconv.Itoa(len(body))} }

// size returns the memory that the page takes at most, in bytes.
func (p *petPage) size() int {
	const fixed = 1 << 10 // the page itself, its header fields, its place in a map
	if p.gzipped != nil {
		return 2*cap(p.body) + fixed
	}
	return cap(p.body) + fixed
}

// isCompressed reports whether the client of r gets the compressed form.
func (p *petPage) isCompressed(r *http.Request) bool {
	return p.gzipped != nil && acceptsGzip(r.Header["Accept-Encoding"])
}

// chosenETag returns the ETag of the form that the client of r gets. That of the
// compressed form is known without compression, so that a 304 costs none. Servers of
// different versions could compress to different bytes. That would matter for ranges,
// which are not served.
func (p *petPage) chosenETag(r *http.Request) string {
	if p.isCompressed(r) {
		return strings.TrimSuffix(p.tag, `"`) + `-gzip"`
	}
	return p.tag
}

// serveList answers GET or HEAD with a list, which is compressed for clients that accept
// that. The compressed representation has an ETag of its own (RFC 9110 section 8.8.3.3).
func (p *petPage) serveList(w http.ResponseWriter, r *http.Request) error {
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
	zipped, err := p.gzipped()
	if err != nil {
		return err
	}
	h["Content-Encoding"] = gzipCoding
	send(w, r, zipped.body, zipped.length)
	return nil
}

// serve answers GET or HEAD with the page, or with 304 if the client has it.
func (p *petPage) serve(w http.ResponseWriter, r *http.Request) error {
	if hasPreconditions(r) {
		answered, err := notModified(w, r, p.tag)
		if answered || err != nil {
			return err
		}
	}
	w.Header()["Etag"] = p.etag
	send(w, r, p.body, p.length)
	return nil
}

// send answers with 200 and JSON.
func send(w http.ResponseWriter, r *http.Request, body []byte, length []string) {
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = length
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // fails only if the client has disconnected
	}
}
