// Package contract checks responses against the promises of the service: those in its
// OpenAPI document, through a library, and those for all responses that an OpenAPI
// document cannot express. Tests send their requests through a [Client], which checks
// each response that it gets.
package contract

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// Contract is what a service has promised. It is safe for concurrent use.
type Contract struct {
	doc    *openapi3.T
	router routers.Router
	// undeclared is the operation of requests that no operation declares: they are
	// answered with an error that all operations have in common.
	undeclared *openapi3.Operation
}

// New reads an OpenAPI document. The document must be valid, with its examples.
func New(document []byte) (*Contract, error) {
	doc, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		return nil, fmt.Errorf("contract: %w", err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, fmt.Errorf("contract: %w", err)
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		return nil, fmt.Errorf("contract: %w", err)
	}
	common := doc.Components.Responses
	return &Contract{doc: doc, router: router, undeclared: &openapi3.Operation{
		Responses: openapi3.NewResponses(
			openapi3.WithStatus(401, common["Unauthorized"]),
			openapi3.WithStatus(403, common["Forbidden"]),
			openapi3.WithStatus(429, common["TooManyRequests"]),
			openapi3.WithStatus(503, common["Unavailable"]),
			openapi3.WithName("default", common["Error"].Value),
		),
	}}, nil
}

// Check returns everything that is wrong with a response which the service gave at
// an instant of its clock.
func (c *Contract) Check(resp *Response, now time.Time) error {
	return errors.Join(invariants(resp, now.Unix()), c.document(resp))
}

// operation returns the operation that a request is for, and whether the document
// declares it. HEAD is implied by GET. Other methods on a declared path are
// answered with errors such as GET has there.
func (c *Contract) operation(method, target string) (op *openapi3.Operation, declared bool) {
	for _, candidate := range []string{method, http.MethodGet} {
		r, err := http.NewRequest(candidate, target, nil)
		if err != nil {
			continue
		}
		for range 2 {
			if route, _, err := c.router.FindRoute(r); err == nil {
				return route.Operation, candidate == method || method == http.MethodHead
			}
			if strings.Contains(strings.ToLower(r.URL.RawPath), "%2f") {
				break
			}
			r.URL.RawPath = "" // the router does not know that /%761 is /v1
		}
	}
	return c.undeclared, false
}

// document checks a response against the document.
func (c *Contract) document(resp *Response) error {
	op, declared := c.operation(resp.Method, resp.Target)
	if !declared && resp.StatusCode < 400 {
		if resp.Method == http.MethodOptions && resp.StatusCode == http.StatusNoContent {
			return nil // as the description of the document says
		}
		return fmt.Errorf("status %d for a request that no operation declares", resp.StatusCode)
	}
	status, promised := promise(op, resp.StatusCode)
	if promised == nil {
		return fmt.Errorf("status %d is not declared by %s", resp.StatusCode, op.OperationID)
	}
	if resp.StatusCode == http.StatusNotModified {
		return missing(promised, resp.Header) // the library passes all of them
	}
	// The library passes all responses to HEAD as well. Those have the fields of GET
	// and no body.
	asGET, err := http.NewRequest(http.MethodGet, "/", nil)
	if err != nil {
		return err
	}
	err = openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: asGET,
			Route:   &routers.Route{Spec: c.doc, Operation: op},
		},
		Status:  resp.StatusCode,
		Header:  resp.Header,
		Body:    resp.body(),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, ExcludeResponseBody: resp.Method == http.MethodHead},
	})
	if err != nil {
		return fmt.Errorf("the response is not what %s declares for %s: %w", op.OperationID, status, err)
	}
	return knownCode(promised, resp)
}

// promise returns what is declared for a status.
func promise(op *openapi3.Operation, status int) (string, *openapi3.Response) {
	for _, name := range []string{strconv.Itoa(status), "default"} {
		if name == "default" && status < 400 {
			break // is for errors
		}
		if ref := op.Responses.Value(name); ref != nil {
			return name, ref.Value
		}
	}
	return "", nil
}

func missing(promised *openapi3.Response, h http.Header) error {
	var errs []error
	for name, field := range promised.Headers {
		if field.Value.Required && len(h.Values(name)) == 0 {
			errs = append(errs, fmt.Errorf("the field %s is missing", name))
		}
	}
	return errors.Join(errs...)
}

// knownCode wants an error to have a code that the document shows for the response.
func knownCode(promised *openapi3.Response, resp *Response) error {
	if resp.StatusCode < 400 || resp.Method == http.MethodHead {
		return nil
	}
	e, err := resp.Error()
	if err != nil {
		return err
	}
	codes := slices.Sorted(maps.Keys(promised.Content["application/json"].Examples))
	if !slices.Contains(codes, e.Code) {
		return fmt.Errorf("the code is %q, and the document shows %q", e.Code, codes)
	}
	return nil
}
