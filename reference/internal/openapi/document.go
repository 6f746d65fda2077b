package openapi

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/animalstore/gatehouse/deprecation"
)

// NewPetSchema refers to the schema of the body of createPet within the document.
const NewPetSchema = "#/components/schemas/NewPet"

//go:embed openapi.json
var source []byte

// Document is the OpenAPI document as a server publishes it. It does not change,
// and is safe for concurrent use.
type Document struct {
	json  []byte
	limit Range
}

// Range is the range of an integer parameter and its default.
type Range struct {
	Min     int `json:"minimum"`
	Max     int `json:"maximum"`
	Default int `json:"default"`
}

// New returns the document. It marks exactly the operations with a notice, by
// operationId, as deprecated. An unknown operationId is an error.
func New(notices map[string]deprecation.Notice) (*Document, error) {
	marked, err := mark(source, notices)
	if err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, marked); err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	d := &Document{json: compact.Bytes()}
	if d.limit, err = limitOf(d.json); err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	return d, nil
}

// JSON returns the document in one line. It must not be changed.
func (d *Document) JSON() []byte { return d.json }

// Limit returns the bounds and the default of the parameter limit.
func (d *Document) Limit() Range { return d.limit }

func limitOf(document []byte) (Range, error) {
	var d struct {
		Components struct {
			Parameters struct {
				Limit struct{ Schema Range }
			}
		}
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return Range{}, err
	}
	limit := d.Components.Parameters.Limit.Schema
	if limit.Min < 1 || limit.Default < limit.Min || limit.Max < limit.Default {
		return Range{}, errors.New("the parameter limit has no bounds, or a default outside of them")
	}
	return limit, nil
}
