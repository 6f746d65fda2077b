package compatibility

import (
	"net/http"
	"slices"
	"strings"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// limits are the rows of package limit. Each function makes its engine when it is
// called: a row calls it for each cell.
var limits = func() (rows []wrapped) {
	day := ratelimit.PerDay(1000)
	plan := ratelimit.MustPlan("free", ratelimit.Penalty{}, day)
	user := func(*http.Request) string { return "ann" }
	userAndPlan := func(*http.Request) (string, *ratelimit.Plan) { return "ann", plan }
	clients := limit.Clients{}
	for name, newMiddleware := range map[string]func() func(http.Handler) http.Handler{
		"limit.ByIP":           func() func(http.Handler) http.Handler { return limit.ByIP(day) },
		"limit.ByUser":         func() func(http.Handler) http.Handler { return limit.ByUser(user, day) },
		"limit.ByPlan":         func() func(http.Handler) http.Handler { return limit.ByPlan(userAndPlan) },
		"limit.Clients.ByIP":   func() func(http.Handler) http.Handler { return clients.ByIP(day) },
		"limit.Clients.ByUser": func() func(http.Handler) http.Handler { return clients.ByUser(user, day) },
		"limit.Clients.ByPlan": func() func(http.Handler) http.Handler { return clients.ByPlan(userAndPlan) },
	} {
		rows = append(rows, wrapped{name, limited, plain(func(next http.Handler) http.Handler { return newMiddleware()(next) })})
	}
	slices.SortFunc(rows, func(a, b wrapped) int { return strings.Compare(a.name, b.name) })
	return rows
}()
