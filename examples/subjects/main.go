// Subjects is a service that counts each request for a user, for the user's
// organisation and for everybody, and searches for the user once more. A request that
// one of them refuses is charged to none.
//
//	go run ./examples/subjects
//	for i in $(seq 6); do curl -i -u ann@acme: http://127.0.0.1:8081/search; done
package main

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/examples/internal/demo"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// The plans. A ban of a shared subject would deny the requests of many users, so that
// only the plan of a user has a penalty. The scope tells a user whose limit is reached.
var (
	user         = ratelimit.MustPlan("user", ratelimit.DefaultPenalty(), ratelimit.PerMinute(20))
	search       = ratelimit.MustPlan("search", ratelimit.Penalty{}, ratelimit.PerMinute(5))
	organisation = ratelimit.MustPlan("organisation", ratelimit.Penalty{}, ratelimit.PerMinute(30), ratelimit.PerMonth(10_000)).WithScope("organisation")
	everybody    = ratelimit.MustPlan("everybody", ratelimit.Penalty{}, ratelimit.PerSecond(1000)).WithScope("service")
)

func main() { demo.Serve(newHandler()) }

func newHandler() (http.Handler, error) {
	limiter, err := memory.New(memory.Options{})
	if err != nil {
		return nil, err
	}
	limited, err := limit.New(limiter, identify, limit.Options{})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /search", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "nothing found") })
	mux.HandleFunc("GET /items", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "no items") })
	return limited(mux), nil
}

// identify takes the word of the client for its name, such as ann@acme. A service would
// check a password or a key first.
func identify(r *http.Request) (ratelimit.Caller, error) {
	name, _, _ := r.BasicAuth()
	_, company, ok := strings.Cut(name, "@")
	if !ok {
		return ratelimit.Caller{}, apierror.New(http.StatusUnauthorized, "missing_user", "Send your name as the user of basic authentication, such as ann@acme.")
	}
	caller := ratelimit.Caller{Subject: "user:" + name, Plan: user}
	if r.URL.Path == "/search" { // a subject of its own: usage belongs to a subject
		caller.Also = append(caller.Also, ratelimit.Charge{Subject: "search:" + name, Plan: search})
	}
	caller.Also = append(caller.Also,
		ratelimit.Charge{Subject: "organisation:" + company, Plan: organisation},
		ratelimit.Charge{Subject: "everybody", Plan: everybody}) // the one that most requests share is last
	return caller, nil
}
