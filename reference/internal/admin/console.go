package admin

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/reference/internal/pages"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// registerConsole serves the console at / and its files. They need no token: they are the
// same on every server, and hold no data.
func (a *admin) registerConsole(mux *http.ServeMux) error {
	files, err := pages.Console()
	if err != nil {
		return err
	}
	for _, f := range files {
		pattern := http.MethodGet + " " + f.Path
		if f.Path == "/" {
			pattern += "{$}"
		}
		mux.Handle(pattern, staticFile(f))
	}
	return nil
}

// staticFile serves a file, which browsers keep and revalidate.
func staticFile(f pages.File) http.Handler {
	sum := sha256.Sum256(f.Body)
	etag := `"` + hex.EncodeToString(sum[:16]) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", pages.Policy)
		h.Set("Content-Type", f.ContentType)
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", etag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.Body))
	})
}

// recentDays is how many days PerDay is the average of.
const recentDays = 7

// listDeprecations lists the deprecated operations, also those without use, by the sunset.
func (a *admin) listDeprecations(w http.ResponseWriter, r *http.Request, s *Server) error {
	now := a.Now()
	uses, err := s.Store.ListDeprecatedUse(r.Context(), store.Day(now).AddDate(0, 0, 1-recentDays))
	if err != nil {
		return storeError(err)
	}
	byID := map[string]*Deprecation{}
	for id, o := range s.Deprecations {
		byID[id] = newDeprecation(id, o, now)
	}
	for _, u := range uses {
		d := byID[u.Operation]
		if d == nil {
			d = &Deprecation{Operation: u.Operation}
			byID[u.Operation] = d
		}
		d.Owners = append(d.Owners, DeprecatedUse{
			Owner: u.Owner, Requests: u.Count, Last: u.Last, PerDay: float64(u.Recent) / recentDays,
		})
	}
	answer := DeprecationList{Deprecations: make([]Deprecation, 0, len(byID))}
	for _, d := range byID {
		answer.Deprecations = append(answer.Deprecations, *d)
	}
	slices.SortFunc(answer.Deprecations, compareDeprecations)
	return writeJSON(w, http.StatusOK, answer)
}

func newDeprecation(id string, o deprecation.Options, now time.Time) *Deprecation {
	d := &Deprecation{Operation: id, Successor: o.Successor, Owners: []DeprecatedUse{}}
	if !o.Since.IsZero() {
		d.Since = &o.Since
	}
	if !o.Sunset.IsZero() {
		days := max(int(math.Ceil(o.Sunset.Sub(now).Hours()/24)), 0)
		d.Sunset, d.DaysLeft = &o.Sunset, &days
	}
	return d
}

// compareDeprecations orders by the sunset, the soonest first and those without one last,
// then by operation.
func compareDeprecations(x, y Deprecation) int {
	switch {
	case x.Sunset == nil && y.Sunset != nil:
		return 1
	case x.Sunset != nil && y.Sunset == nil:
		return -1
	case x.Sunset != nil && !x.Sunset.Equal(*y.Sunset):
		return x.Sunset.Compare(*y.Sunset)
	}
	return cmp.Compare(x.Operation, y.Operation)
}
