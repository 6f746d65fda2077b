package api

import "net/http"

// A page is the response to a read: a list, a pet, or a file of the site.
type page struct {
	body        []byte // must not be changed
	contentType string
	link        string // "": there is none
	etag        string // strong
}

// newPage returns a page of JSON. The validator changes with the link too: otherwise a
// client that has the last page of a list would not notice when another one follows it.
func newPage(body []byte, link string) *page {
	return &page{body, "application/json", link, etagOf(body, link)}
}

// serve answers GET or HEAD with the page, or with 304 if the client has it.
func (p *page) serve(w http.ResponseWriter, r *http.Request) error {
	if p.link != "" {
		w.Header().Set("Link", p.link)
	}
	answered, err := notModified(w, r, p.etag)
	if !answered && err == nil {
		write(w, r, http.StatusOK, p.contentType, p.body)
	}
	return err
}
