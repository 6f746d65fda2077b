package openapi_test

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/reference/internal/openapi"
)

// load returns the document as a library reads it, which also checks the
// examples against their schemas.
func load(t *testing.T, o openapi.Options) ([]byte, *openapi3.T) {
	t.Helper()
	d, err := openapi.New(o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	parsed, err := openapi3.NewLoader().LoadFromData(d)
	if err != nil {
		t.Fatalf("the document cannot be loaded: %v", err)
	}
	if err := parsed.Validate(t.Context()); err != nil {
		t.Fatalf("the document is not valid OpenAPI %s: %v", parsed.OpenAPI, err)
	}
	return d, parsed
}

func operations(doc *openapi3.T) map[string]*openapi3.Operation {
	ops := make(map[string]*openapi3.Operation)
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			ops[op.OperationID] = op
		}
	}
	return ops
}

// Generators of clients follow only references to whole components (oapi-codegen), ignore what
// stands beside a reference, take an integer without a format for one of 32 bits (kiota,
// openapi-generator in Java), and require a member of a body that has a default
// (openapi-typescript).
func TestPlainFormForGenerators(t *testing.T) {
	d, _ := load(t, openapi.Options{})
	var document map[string]any
	if err := json.Unmarshal(d, &document); err != nil {
		t.Fatal(err)
	}
	component := regexp.MustCompile(`^#/components/[a-zA-Z]+/[\w.-]+$`)
	var walk func(where string, v any)
	walk = func(where string, v any) {
		switch v := v.(type) {
		case []any:
			for i, e := range v {
				walk(fmt.Sprint(where, "/", i), e)
			}
		case map[string]any:
			most, bounded := v["maximum"].(float64)
			if v["type"] == "integer" && v["format"] != "int64" && (!bounded || most > math.MaxInt32) {
				t.Errorf("%s: the integer has neither the format int64 nor a maximum of 32 bits", where)
			}
			if to, ok := v["$ref"].(string); ok && (len(v) > 1 || !component.MatchString(to)) {
				t.Errorf("%s: %v, want only a $ref to #/components/KIND/NAME", where, v)
			}
			if v["default"] != nil && strings.HasPrefix(where, "/components/schemas/") {
				t.Errorf("%s: there is a default", where)
			}
			for name, e := range v {
				walk(where+"/"+name, e)
			}
		}
	}
	walk("", document)
}

func TestDocumentDeclaresTheInterface(t *testing.T) {
	_, doc := load(t, openapi.Options{Deprecations: map[string]deprecation.Options{"getPet": leaving}})
	if doc.OpenAPI != "3.1.1" || doc.Info.Version != "1.0.0" {
		t.Errorf("openapi %s, info.version %s, want 3.1.1 and 1.0.0", doc.OpenAPI, doc.Info.Version)
	}
	want := map[string][]string{
		"listPets":  {"200", "304", "400", "401", "403", "429", "503", "default"},
		"createPet": {"201", "400", "401", "403", "422", "429", "503", "default"},
		"getPet":    {"200", "304", "400", "401", "403", "404", "410", "429", "503", "default"},
		"getUsage":  {"200", "304", "400", "401", "429", "503", "default"},
	}
	got := make(map[string][]string)
	for id, op := range operations(doc) {
		got[id] = op.Responses.Keys()
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("responses of each operation (-want +got):\n%s", d)
	}
	for _, path := range []string{"/pets", "/pets/{petId}", "/usage"} {
		if doc.Paths.Find(path) == nil {
			t.Errorf("there is no path %s", path)
		}
	}
	if s := doc.Components.SecuritySchemes["bearerAuth"]; s == nil || s.Value.Type != "http" || s.Value.Scheme != "bearer" {
		t.Error("bearerAuth is not the HTTP scheme bearer")
	}
}

func TestEveryResponseDeclaresItsFields(t *testing.T) {
	_, doc := load(t, openapi.Options{Deprecations: map[string]deprecation.Options{"getPet": leaving}})
	for id, op := range operations(doc) {
		for status, response := range op.Responses.Map() {
			required := []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-Request-Id"}
			listed := []string{}
			switch status {
			case "403": // a suspended plan has no reset
				required = []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-Request-Id"}
			case "401":
				required = append(required, "WWW-Authenticate")
			case "429", "503":
				required = append(required, "Retry-After")
			case "default":
				listed = append(listed, "Allow", "Accept", "Accept-Encoding")
			}
			if id == "getPet" {
				listed = append(listed, "Deprecation", "Sunset", "Link")
			}
			for _, name := range required {
				if h := response.Value.Headers[name]; h == nil || !h.Value.Required {
					t.Errorf("%s %s does not declare %s as required", id, status, name)
				}
			}
			for _, name := range listed {
				if response.Value.Headers[name] == nil {
					t.Errorf("%s %s does not declare %s", id, status, name)
				}
			}
			if id != "getPet" && response.Value.Headers["Deprecation"] != nil {
				t.Errorf("%s %s declares Deprecation, which belongs to getPet alone", id, status)
			}
		}
	}
}

func TestErrorExamplesAreNamedForTheirCodes(t *testing.T) {
	_, doc := load(t, openapi.Options{})
	for id, op := range operations(doc) {
		for status, response := range op.Responses.Map() {
			if status < "400" {
				continue
			}
			if response.Value.Content["application/problem+json"] == nil {
				t.Errorf("%s %s has no problem details", id, status)
			}
			content := response.Value.Content["application/json"]
			if content == nil || len(content.Examples) == 0 {
				t.Errorf("%s %s shows none of its codes", id, status)
				continue
			}
			for name, example := range content.Examples {
				value := example.Value.Value.(map[string]any)
				if value["code"] != name {
					t.Errorf("%s %s: the example %s has the code %v", id, status, name, value["code"])
				}
				if n, err := strconv.ParseFloat(status, 64); err == nil && value["status"] != n {
					t.Errorf("%s %s: the example %s has the status %v", id, status, name, value["status"])
				}
			}
		}
	}
}

// The description of the member code names every code that a response shows.
func TestErrorDescriptionNamesEveryCode(t *testing.T) {
	_, doc := load(t, openapi.Options{})
	description := doc.Components.Schemas["Error"].Value.Properties["code"].Value.Description
	codes := map[string]bool{"cost_exceeds_limit": true} // reserved
	for _, e := range doc.Components.Examples {
		codes[e.Value.Value.(map[string]any)["code"].(string)] = true
	}
	for code := range codes {
		if !regexp.MustCompile(`\b` + code + `\b`).MatchString(description) {
			t.Errorf("the description of code does not name %s", code)
		}
	}
	for _, word := range regexp.MustCompile(`[a-z]+_[a-z_]+`).FindAllString(description, -1) {
		if !codes[word] {
			t.Errorf("the description of code names %s, which no response shows", word)
		}
	}
}

// Many tools read the document as YAML, which has no surrogate pairs.
func TestDocumentIsYAML(t *testing.T) {
	d, _ := load(t, openapi.Options{})
	if pair := regexp.MustCompile(`\\u[dD][89abAB]`).Find(d); pair != nil {
		t.Errorf("the document has the surrogate %s, want the character itself", pair)
	}
}

var leaving = deprecation.Options{
	Since:     time.Date(2026, time.January, 2, 0, 0, 0, 0, time.UTC),
	Sunset:    time.Date(2031, time.March, 4, 0, 0, 0, 0, time.UTC),
	Successor: "/v1/pets?status=available&limit=1",
}

// What a server adds to the document.
func TestMarksAndServers(t *testing.T) {
	const production, staging = "https://pets.example/v1", "https://staging.pets.example/v1?a&b"
	marked := map[string]any{"x-deprecated-since": "2026-01-02", "x-sunset": "2031-03-04", "x-successor": leaving.Successor, "x-stability-level": "experimental"}
	for _, test := range []struct {
		o       openapi.Options
		servers []string
		marks   map[string]map[string]any // by operation
	}{
		{openapi.Options{}, []string{"/v1"}, nil},
		{openapi.Options{Production: production, Deprecations: map[string]deprecation.Options{"getPet": {Since: leaving.Since}}},
			[]string{"/v1", production}, map[string]map[string]any{"getPet": {"x-deprecated-since": "2026-01-02"}}},
		{openapi.Options{Staging: staging, Stability: map[string]string{"getUsage": "beta"}},
			[]string{"/v1", staging}, map[string]map[string]any{"getUsage": {"x-stability-level": "beta"}}},
		{openapi.Options{Production: production, Staging: staging, Stability: map[string]string{"getPet": "experimental"},
			Deprecations: map[string]deprecation.Options{"getPet": leaving}},
			[]string{"/v1", production, staging}, map[string]map[string]any{"getPet": marked}},
	} {
		_, doc := load(t, test.o)
		var servers []string
		for _, server := range doc.Servers {
			servers = append(servers, server.URL)
		}
		if diff := cmp.Diff(test.servers, servers); diff != "" {
			t.Errorf("the servers (-want +got):\n%s", diff)
		}
		for id, op := range operations(doc) {
			if diff := cmp.Diff(test.marks[id], op.Extensions, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the marks of %s (-want +got):\n%s", id, diff)
			}
			level, stable := test.o.Stability[id]
			if strings.HasSuffix(op.Summary, "("+level+")") != stable || strings.Count(op.Summary, "(") > 1 {
				t.Errorf("%s has the summary %q, want %q in it", id, op.Summary, level)
			}
			if _, ok := test.o.Deprecations[id]; op.Deprecated != ok {
				t.Errorf("%s is deprecated: %v", id, op.Deprecated)
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	_, err := openapi.New(openapi.Options{Deprecations: map[string]deprecation.Options{"getPets": leaving}})
	if err == nil || !strings.Contains(err.Error(), `"getPets"`) {
		t.Errorf("New with an operation that does not exist: error %v, want one that names it", err)
	}
}
