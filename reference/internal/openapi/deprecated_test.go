package openapi_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/reference/internal/openapi"
)

var leaving = deprecation.Notice{
	Since:     time.Date(2026, time.January, 2, 0, 0, 0, 0, time.UTC),
	Sunset:    time.Date(2031, time.March, 4, 0, 0, 0, 0, time.UTC),
	Successor: "/v1/pets?status=available&limit=1",
}

func TestDeprecatedOperations(t *testing.T) {
	tests := map[string]struct {
		notices map[string]deprecation.Notice
		want    map[string]any
	}{
		"with everything": {
			map[string]deprecation.Notice{"getPet": leaving},
			map[string]any{
				"deprecated": true, "x-deprecated-since": "2026-01-02", "x-sunset": "2031-03-04",
				"x-successor": "/v1/pets?status=available&limit=1",
			},
		},
		"without a sunset and a successor": {
			map[string]deprecation.Notice{"getPet": {Since: leaving.Since}},
			map[string]any{"deprecated": true, "x-deprecated-since": "2026-01-02"},
		},
		"not at all": {nil, map[string]any{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d, _ := load(t, test.notices)
			var doc struct {
				Paths map[string]map[string]map[string]any
			}
			if err := json.Unmarshal(d.JSON(), &doc); err != nil {
				t.Fatal(err)
			}
			for path, item := range doc.Paths {
				for method, operation := range item {
					want := map[string]any{}
					if operation["operationId"] == "getPet" {
						want = test.want
					}
					got := make(map[string]any)
					for name, value := range operation {
						if name == "deprecated" || strings.HasPrefix(name, "x-") {
							got[name] = value
						}
					}
					if d := cmp.Diff(want, got); d != "" {
						t.Errorf("%s %s (-want +got):\n%s", method, path, d)
					}
				}
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	tests := map[string]struct {
		notices map[string]deprecation.Notice
		want    string
	}{
		"an operation that does not exist": {map[string]deprecation.Notice{"getPets": leaving}, `"getPets"`},
		"a notice without a beginning":     {map[string]deprecation.Notice{"getPet": {}}, "since when"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := openapi.New(test.notices); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("New: error %v, want one with %s", err, test.want)
			}
		})
	}
}
