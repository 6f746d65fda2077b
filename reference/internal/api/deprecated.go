package api

import (
	"fmt"
	"net/http"

	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/openapi"
)

// Document returns the OpenAPI document of a server with these deprecations.
func Document(deprecations map[string]config.Deprecation) (*openapi.Document, error) {
	notices := make(map[string]deprecation.Notice, len(deprecations))
	for id, d := range deprecations {
		notices[id] = deprecation.Notice{Since: d.Since, Sunset: d.Sunset, Successor: d.Successor}
	}
	return openapi.New(notices)
}

// Deprecatable returns the operationIds of the operations that can be deprecated:
// each is the only operation of its path, since the header fields are about the
// whole resource.
func Deprecatable() []string {
	var ids []string
	for _, res := range new(api).resources() {
		for _, op := range res.operations {
			if len(res.operations) == 1 {
				ids = append(ids, op.id)
			}
		}
	}
	return ids
}

// leaving returns the middlewares of the operations that are deprecated. Announce
// puts the header fields on all responses for their paths, and is placed around the
// gate. Remove answers for operations that are removed. It is placed inside the
// gate, but before methods are told apart: a removed resource has none.
func (a *api) leaving(resources []resource) (announce, remove []middleware.Middleware, err error) {
	for id, d := range a.Deprecations {
		path, err := ownPath(resources, id)
		if err != nil {
			return nil, nil, fmt.Errorf("api: Config.Deprecations[%q]: %w", id, err)
		}
		d.OnUse, d.Errors, d.Now = a.countUse(id), a.errors, a.Now
		declaration, err := deprecation.New(d)
		if err != nil {
			return nil, nil, fmt.Errorf("api: Config.Deprecations[%q]: %w", id, err)
		}
		announce = append(announce, deprecation.OnPath(path, declaration.Headers))
		remove = append(remove, deprecation.OnPath(path, declaration.Enforce))
	}
	return announce, remove, nil
}

// ownPath returns the path on which an operation is the only one.
func ownPath(resources []resource, id string) (string, error) {
	for _, res := range resources {
		for _, op := range res.operations {
			if op.id == id && len(res.operations) == 1 {
				return res.path, nil
			}
		}
	}
	return "", fmt.Errorf("not one of %q, which can be deprecated", Deprecatable())
}

// countUse returns a function that reports the owner that uses an operation.
// Requests with other methods on its path do not use it.
func (a *api) countUse(id string) func(*http.Request) {
	return func(r *http.Request) {
		if p, ok := bearer.FromContext[apikey.Principal](r.Context()); ok && isRead(r) {
			a.OnDeprecatedUse(id, p.Owner)
		}
	}
}
