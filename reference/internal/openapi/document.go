// Package openapi holds the OpenAPI 3.1 document of the service, openapi.json,
// which is the only source of the schema of request bodies and of the bounds of
// parameters. Tests check every response against it.
//
//	document, err := openapi.New(openapi.Options{Stability: map[string]string{"getUsage": "beta"}})
//	...
//	newPet, err := jsonbody.New[NewPet](document, openapi.NewPetSchema, jsonbody.Options{})
//	limit, err := openapi.Limit(document)
package openapi

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
)

// NewPetSchema refers to the schema of the body of createPet within the document.
const NewPetSchema = "#/components/schemas/NewPet"

//go:embed openapi.json
var source []byte

// Options are what the settings say about the document.
type Options struct {
	Deprecations map[string]deprecation.Options // by operationId
	Stability    map[string]string              // by operationId: experimental or beta

	// Production and Staging are the public base addresses of the service. Empty: the
	// document has only the server that it comes from.
	Production, Staging string
}

// New returns the document, in one line. It marks the operations that are deprecated or not
// stable. An unknown operationId is an error.
func New(o Options) ([]byte, error) {
	document := string(source)
	var err error
	for id, d := range o.Deprecations {
		if d.Since.IsZero() {
			return nil, fmt.Errorf("openapi: %s: since when it is deprecated must be set", id)
		}
		// OpenAPI defines only deprecated. Tools that compare documents for breaking changes
		// know x-sunset and x-stability-level.
		members := map[string]any{"deprecated": true, "x-deprecated-since": d.Since.UTC().Format(time.DateOnly)}
		if !d.Sunset.IsZero() {
			members["x-sunset"] = d.Sunset.UTC().Format(time.DateOnly)
		}
		if d.Successor != "" {
			members["x-successor"] = d.Successor
		}
		if document, err = mark(document, id, members, ""); err != nil {
			return nil, err
		}
	}
	for id, level := range o.Stability {
		if document, err = mark(document, id, map[string]any{"x-stability-level": level}, " ("+level+")"); err != nil {
			return nil, err
		}
	}
	servers := ownServer
	for _, s := range []server{{o.Production, "The service in production."}, {o.Staging, "The service to test against."}} {
		if s.URL != "" {
			text, err := json.Marshal(s)
			if err != nil {
				return nil, fmt.Errorf("openapi: %w", err)
			}
			servers += ", " + string(text)
		}
	}
	var line bytes.Buffer
	if err := json.Compact(&line, []byte(strings.Replace(document, ownServer, servers, 1))); err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	return line.Bytes(), nil
}

type server struct {
	URL         string `json:"url"`
	Description string `json:"description"`
}

// ownServer is the server in openapi.json.
const ownServer = `{ "url": "/v1", "description": "The server that this document comes from." }`

// mark adds members to an operation of the document, and text to its summary, which /docs
// and other tools show.
func mark(document, id string, members map[string]any, text string) (string, error) {
	const summary = `"summary": "`
	operation := fmt.Sprintf("%q: %q,", "operationId", id)
	before, rest, found := strings.Cut(document, operation)
	if !found {
		return "", fmt.Errorf("openapi: there is no operation %q", id)
	}
	marked, err := json.Marshal(members)
	if err != nil {
		return "", fmt.Errorf("openapi: %w", err)
	}
	between, rest, _ := strings.Cut(rest, summary)
	title, rest, _ := strings.Cut(rest, `"`)
	return before + operation + strings.Trim(string(marked), "{}") + "," + between + summary + title + text + `"` + rest, nil
}

// Range is the range of an integer parameter and its default.
type Range struct {
	Min     int `json:"minimum"`
	Max     int `json:"maximum"`
	Default int `json:"default"`
}

// Limit returns the bounds and the default of the parameter limit in a document.
func Limit(document []byte) (Range, error) {
	var d struct {
		Components struct {
			Parameters struct {
				Limit struct{ Schema Range }
			}
		}
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return Range{}, fmt.Errorf("openapi: %w", err)
	}
	limit := d.Components.Parameters.Limit.Schema
	if limit.Min < 1 || limit.Default < limit.Min || limit.Max < limit.Default {
		return Range{}, errors.New("openapi: the parameter limit has no bounds, or a default outside of them")
	}
	return limit, nil
}
