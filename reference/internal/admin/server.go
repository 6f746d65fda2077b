package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/activity"
	"github.com/animalstore/gatehouse/reference/internal/adminapi"
	"github.com/animalstore/gatehouse/reference/internal/keys"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// A Server is a server that serves, as far as the endpoints show and change it.
type Server struct {
	Limiter  Limiter
	Activity *activity.Counter // of the decisions that it has made
	Store    Store

	// Plan returns the plans that a key can have, by the present settings.
	Plan keys.PlanFunc

	// Deprecations are the deprecated operations by operationId, by the present settings.
	Deprecations map[string]deprecation.Options

	// DailyUse returns the days of an owner, as [store.DailyUses] says, with the requests
	// that are not stored yet.
	DailyUse func(ctx context.Context, owner string, since time.Time) ([]store.DailyUse, error)

	// Report returns the numbers for GET /state.
	Report func() adminapi.Report
}

// A Store stores what an operator can see and change.
type Store interface {
	store.Keys
	store.Audits
	store.DeprecatedUses
}

// A Limiter is an engine that an operator can look into.
type Limiter interface {
	ratelimit.Peeker
	ratelimit.Banner
}

var errStarting = apierror.New(http.StatusServiceUnavailable, apierror.CodeUnavailable, "The server is still starting. Try again later.")

// serving returns the handler of an endpoint that requires a server which serves.
func (a *admin) serving(h func(w http.ResponseWriter, r *http.Request, s *Server) error) http.Handler {
	return a.errors.Handle(func(w http.ResponseWriter, r *http.Request) error {
		s := a.Server()
		if s == nil {
			return errStarting
		}
		return h(w, r, s)
	})
}
