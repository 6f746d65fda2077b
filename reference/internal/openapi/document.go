// Package openapi holds the OpenAPI 3.1 document of the service, openapi.json,
// which is the only source of the schema of request bodies and of the bounds of
// parameters. Tests check every response against it.
//
//	document, err := openapi.New(map[string]deprecation.Options{"getPet": {Since: since, Sunset: sunset}})
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
	"time"

	"github.com/animalstore/gatehouse/deprecation"
)

// NewPetSchema refers to the schema of the body of createPet within the document.
const NewPetSchema = "#/components/schemas/NewPet"

//go:embed openapi.json
var source []byte

// New returns the document, in one line. It marks the operations that are deprecated, by
// operationId. An unknown operationId is an error.
func New(deprecations map[string]deprecation.Options) ([]byte, error) {
	document := source
	for id, d := range deprecations {
		if d.Since.IsZero() {
			return nil, fmt.Errorf("openapi: %s: since when it is deprecated must be set", id)
		}
		// OpenAPI defines only deprecated. Tools that compare documents for breaking changes
		// know x-sunset.
		mark := struct {
			ID         string `json:"operationId"`
			Deprecated bool   `json:"deprecated"`
			Since      string `json:"x-deprecated-since"`
			Sunset     string `json:"x-sunset,omitempty"`
			Successor  string `json:"x-successor,omitempty"`
		}{ID: id, Deprecated: true, Since: d.Since.UTC().Format(time.DateOnly), Successor: d.Successor}
		if !d.Sunset.IsZero() {
			mark.Sunset = d.Sunset.UTC().Format(time.DateOnly)
		}
		members, err := json.Marshal(mark)
		if err != nil {
			return nil, fmt.Errorf("openapi: %w", err)
		}
		member := fmt.Appendf(nil, "%q: %q", "operationId", id)
		if !bytes.Contains(document, member) {
			return nil, fmt.Errorf("openapi: there is no operation %q", id)
		}
		document = bytes.Replace(document, member, bytes.Trim(members, "{}"), 1)
	}
	var line bytes.Buffer
	if err := json.Compact(&line, document); err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	return line.Bytes(), nil
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
