package admin

import (
	"cmp"
	"context"
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// recentDays is how many days PerDay is the average of.
const recentDays = 7

// listDeprecations lists the deprecated operations, also those without use, by the sunset.
func (a *admin) listDeprecations(w http.ResponseWriter, r *http.Request, s *Server) error {
	list, err := s.ListDeprecations(r.Context(), a.Now())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"deprecations": append([]Deprecation{}, list...)})
}

// ListDeprecations returns what GET /deprecations lists.
func (s *Server) ListDeprecations(ctx context.Context, now time.Time) ([]Deprecation, error) {
	uses, err := s.Store.ListDeprecatedUse(ctx, store.Day(now).AddDate(0, 0, 1-recentDays))
	if err != nil {
		return nil, err
	}
	byID := map[string]Deprecation{}
	for id, o := range s.Deprecations {
		d := Deprecation{Operation: id, Since: o.Since, Sunset: o.Sunset, Successor: o.Successor, Owners: []DeprecatedUse{}}
		if !o.Sunset.IsZero() {
			d.DaysLeft = new(max(int(math.Ceil(o.Sunset.Sub(now).Hours()/24)), 0))
		}
		byID[id] = d
	}
	for _, u := range uses {
		d := byID[u.Operation]
		d.Operation = u.Operation
		d.Owners = append(d.Owners, DeprecatedUse{
			Owner: u.Owner, Requests: u.Count, Last: u.Last, PerDay: float64(u.Recent) / recentDays,
		})
		byID[u.Operation] = d
	}
	return slices.SortedFunc(maps.Values(byID), compareDeprecations), nil
}

// compareDeprecations orders by the sunset, the soonest first and those without one last,
// then by operation.
func compareDeprecations(x, y Deprecation) int {
	switch {
	case x.Sunset.IsZero() && !y.Sunset.IsZero():
		return 1
	case y.Sunset.IsZero() && !x.Sunset.IsZero():
		return -1
	}
	return cmp.Or(x.Sunset.Compare(y.Sunset), cmp.Compare(x.Operation, y.Operation))
}

// A Deprecation is a deprecated operation, and the owners that have used it.
type Deprecation struct {
	Operation string          `json:"operation"`           // operationId
	Since     time.Time       `json:"since,omitzero"`      // zero: the settings do not deprecate it any more
	Sunset    time.Time       `json:"sunset,omitzero"`     // zero: it is not known when it is removed
	DaysLeft  *int            `json:"daysLeft,omitempty"`  // until the sunset, rounded up; 0 from the sunset on, nil without one
	Successor string          `json:"successor,omitempty"` // what to call instead
	Owners    []DeprecatedUse `json:"owners"`              // those with the most requests first
}

// A DeprecatedUse is how an owner uses a deprecated operation.
type DeprecatedUse struct {
	Owner    string    `json:"owner"`
	Requests int64     `json:"requests"` // of all time
	Last     time.Time `json:"last"`     // the latest of them
	PerDay   float64   `json:"perDay"`   // requests a day in the last seven, of which today is one
}
