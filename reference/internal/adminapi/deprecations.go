package adminapi

import (
	"context"
	"net/http"
	"time"
)

// A Deprecation is a deprecated operation, and the owners that have used it.
type Deprecation struct {
	Operation string          `json:"operation"`           // operationId
	Since     *time.Time      `json:"since,omitempty"`     // nil: the settings do not deprecate it any more
	Sunset    *time.Time      `json:"sunset,omitempty"`    // nil: it is not known when it is removed
	DaysLeft  *int            `json:"daysLeft,omitempty"`  // until the sunset, rounded up; 0 from the sunset on
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

// A DeprecationList is the answer of GET /deprecations.
type DeprecationList struct {
	Deprecations []Deprecation `json:"deprecations"`
}

// Deprecations returns the deprecated operations with their use, by the sunset.
func (c Client) Deprecations(ctx context.Context) ([]Deprecation, error) {
	var answer DeprecationList
	err := c.do(ctx, http.MethodGet, "/deprecations", nil, nil, &answer)
	return answer.Deprecations, err
}
