package api

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/reference/internal/pages"
)

// Deprecatable returns the operationIds of the operations that can be deprecated. Each is
// the only operation of its path, because the header fields apply to the whole
// resource.
func Deprecatable() []string {
	return slices.Sorted(maps.Keys(deprecatable(new(api).resources())))
}

// Operations returns the operationIds of all operations.
func Operations() (ids []string) {
	for _, res := range new(api).resources() {
		for _, op := range res.operations {
			ids = append(ids, op.id)
		}
	}
	slices.Sort(ids)
	return ids
}

// deprecatable returns the paths of these operations.
func deprecatable(resources []resource) map[string]string {
	paths := make(map[string]string)
	for _, res := range resources {
		for _, op := range res.operations {
			if len(res.operations) == 1 {
				paths[op.id] = res.path
			}
		}
	}
	return paths
}

// deprecationMiddlewares returns the middlewares of the deprecated operations. The headers
// set the fields of all responses for their paths, and are placed outside of the gate. The
// others, enforce, answer 410 for operations that are removed. They are placed inside the
// gate and before the method is checked, because a removed resource has no methods.
func (a *api) deprecationMiddlewares(resources []resource) (headers, enforce []middleware.Middleware, err error) {
	paths := deprecatable(resources)
	for id, d := range a.Deprecations {
		path, ok := paths[id]
		if !ok {
			return nil, nil, fmt.Errorf("api: Config.Deprecations[%q]: must be one of %q, the operations that can be deprecated", id, Deprecatable())
		}
		d.Documentation = cmp.Or(d.Documentation, pages.Path+"#"+id)
		d.OnUse, d.Errors, d.Now = a.countUse(id), a.errors, a.Now
		declaration, err := deprecation.New(d)
		if err != nil {
			return nil, nil, fmt.Errorf("api: Config.Deprecations[%q]: %w", id, err)
		}
		headers = append(headers, deprecation.OnPath(path, declaration.Headers))
		enforce = append(enforce, deprecation.OnPath(path, declaration.Enforce))
	}
	return headers, enforce, nil
}

// countUse returns the function that counts the use of an operation by owner.
// Requests with other methods on its path do not count.
func (a *api) countUse(id string) func(*http.Request) {
	count := a.Telemetry.DeprecatedUse(id)
	return func(r *http.Request) {
		if p, ok := bearer.FromContext[apikey.Principal](r.Context()); ok && isRead(r) {
			count(r)
			a.OnDeprecatedUse(id, p.Owner)
		}
	}
}
