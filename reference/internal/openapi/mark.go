package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
)

// mark returns the document with exactly the operations marked that have a notice.
func mark(document []byte, notices map[string]deprecation.Notice) ([]byte, error) {
	unknown := maps.Clone(notices)
	marked, err := editMember(document, "paths", func(paths json.RawMessage) (json.RawMessage, error) {
		return editEach(paths, func(item json.RawMessage) (json.RawMessage, error) {
			return editEach(item, func(operation json.RawMessage) (json.RawMessage, error) {
				var o struct{ OperationID string }
				if err := json.Unmarshal(operation, &o); err != nil {
					return nil, err
				}
				notice, deprecated := notices[o.OperationID]
				delete(unknown, o.OperationID)
				return markOperation(operation, notice, deprecated)
			})
		})
	})
	if err != nil {
		return nil, err
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("unknown operations %q", slices.Sorted(maps.Keys(unknown)))
	}
	return marked, nil
}

// markOperation sets or removes the members about the deprecation of an operation.
// OpenAPI defines only deprecated. Tools that compare documents for breaking changes
// know x-sunset.
func markOperation(operation json.RawMessage, n deprecation.Notice, deprecated bool) (json.RawMessage, error) {
	o, err := membersOf(operation)
	if err != nil {
		return nil, err
	}
	if deprecated && n.Since.IsZero() {
		return nil, errors.New("a notice does not say since when the operation is deprecated")
	}
	for _, m := range []struct {
		name  string
		value any
		set   bool
	}{
		{"deprecated", true, deprecated},
		{"x-deprecated-since", n.Since.UTC().Format(time.DateOnly), deprecated},
		{"x-sunset", n.Sunset.UTC().Format(time.DateOnly), deprecated && !n.Sunset.IsZero()},
		{"x-successor", n.Successor, deprecated && n.Successor != ""},
	} {
		o = slices.DeleteFunc(o, func(have member) bool { return have.name == m.name })
		if !m.set {
			continue
		}
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		o = append(o, member{m.name, value})
	}
	return o.encode()
}
