package console

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/nilvalue"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// Options are optional settings of a [Console]. The zero value works. The functions are called
// for each page, and must be safe for concurrent use.
type Options struct {
	// Title is the name of the service on the page. "" means "Gatehouse".
	Title string

	// Engines are further engines whose numbers the page shows, such as the local engine of a
	// failover.Limiter.
	Engines []ratelimit.Limiter

	// Facts returns what else the page shows about the service, such as its version: names in
	// lower case, and values that package json can encode, or console.json fails. Nil: nothing.
	Facts func(ctx context.Context) map[string]any

	// Deprecations returns the deprecated operations in the order of the page. Nil: the page
	// has no such part.
	Deprecations func(ctx context.Context) ([]Deprecation, error)
}

// A Console is an http.Handler for operators. [New] returns one. It is safe for concurrent use.
type Console struct {
	options Options
	limiter ratelimit.Limiter
	handler http.Handler
	counts  counts
	since   time.Time

	mu    sync.Mutex
	users map[[2]string]User // of deprecated operations, by operation and subject
}

//go:embed console.css console.js icon.svg
var files embed.FS

// New returns a console for a limit that counts with the engine l. It returns an error if l or one
// of opts.Engines is nil.
func New(l ratelimit.Limiter, opts Options) (*Console, error) {
	opts.Engines = append([]ratelimit.Limiter{l}, opts.Engines...)
	if slices.ContainsFunc(opts.Engines, func(e ratelimit.Limiter) bool { return nilvalue.InEngine(e) }) {
		return nil, errors.New("console: New: the limiter and each of Options.Engines must not be nil or the zero memory.Limiter")
	}
	opts.Title = cmp.Or(opts.Title, "Gatehouse")
	c := &Console{options: opts, limiter: l, counts: counts{seed: maphash.MakeSeed()}, since: time.Now(), users: map[[2]string]User{}}
	mux, errs := http.NewServeMux(), &apierror.Responder{}
	mux.Handle("GET /", http.FileServerFS(files))
	mux.Handle("GET /{$}", errs.Handle(c.show))
	mux.Handle("GET /console.json", errs.Handle(c.show))
	if banner, ok := l.(engine.Banner); ok {
		mux.Handle("POST /unban", errs.Handle(func(w http.ResponseWriter, r *http.Request) error {
			return unban(w, r, banner)
		}))
	}
	c.handler = http.NewCrossOriginProtection().Handler(errs.Mux(mux))
	return c, nil
}

// Observe counts a decision. It is for Observe in the options of packages limit, gatehousegrpc and
// gatehouseconnect; a service that observes decisions itself calls it in its own function. In
// shadow mode the console shows the decisions, although no request is refused. A request with
// several charges counts once, for its caller.
func (c *Console) Observe(_ *http.Request, caller ratelimit.Caller, d ratelimit.Decision, err error) {
	if err != nil || caller.Plan == nil || int(d.Outcome) >= outcomes {
		d.Outcome, d.Time = 0, 0 // d is only what the header fields show
	}
	c.counts.count(caller.Subject, caller.Plan, d.Time, d.Outcome)
}

// policy is the Content-Security-Policy (CSP level 3) of all responses.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// ServeHTTP serves the page, and what belongs to it.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer, browsers send "Origin: null" to unban
	h.Set("Cache-Control", "no-store")
	inner := *r // the inner mux sets its own path and pattern
	inner.URL = &url.URL{Path: "/" + r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:], RawQuery: r.URL.RawQuery}
	c.handler.ServeHTTP(w, &inner)
}

// show answers with the page or, at another path, with JSON.
func (c *Console) show(w http.ResponseWriter, r *http.Request) error {
	last := r.URL.Query().Get("last")
	if last != "" && last != "minute" && last != "day" {
		return apierror.New(http.StatusBadRequest, "invalid_parameter", "last must be minute or day.")
	}
	report := c.report(r.Context(), cmp.Or(last, "minute"))
	var body bytes.Buffer
	contentType, err := "application/json", error(nil)
	if r.URL.Path == "/" {
		contentType, err = "text/html; charset=utf-8", pageTemplate.Execute(&body, report)
	} else {
		err = json.NewEncoder(&body).Encode(report)
	}
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(body.Bytes()) // an error: the client has gone
	return nil
}

// unban ends a ban, and leads the browser back to the page.
func unban(w http.ResponseWriter, r *http.Request, banner engine.Banner) error {
	subject, err := url.PathUnescape(r.PostFormValue("subject"))
	if err != nil || subject == "" {
		return apierror.New(http.StatusBadRequest, "invalid_parameter", "Name the subject to unban as unban in console.json does: subject=user:ann.")
	}
	ended, err := banner.Unban(r.Context(), subject)
	if err != nil {
		message := fmt.Sprintf("The ban of %s may still be in force: %v. Go back, and try again.", visible(subject), err)
		return apierror.New(http.StatusServiceUnavailable, "unavailable", message).Wrap(err)
	}
	if !ended {
		return apierror.New(http.StatusNotFound, "not_found", "No ban of "+visible(subject)+" is in force. Go back to the page.")
	}
	w.Header().Set("Location", "./#bans") // relative also behind http.StripPrefix
	w.WriteHeader(http.StatusSeeOther)
	return nil
}
