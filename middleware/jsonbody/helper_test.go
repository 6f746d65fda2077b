package jsonbody_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/jsonbody"
)

// openAPI is the part of a service's document that has to do with bodies.
const openAPI = `{
	"openapi": "3.1.1",
	"info": {"title": "Pets", "version": "1.0.0"},
	"paths": {"/pets": {"$ref": "./paths.json"}},
	"components": {"schemas": {
		"PetStatus": {"type": "string", "enum": ["available", "pending", "sold"]},
		"NewPet": {
			"type": "object",
			"required": ["name", "categoryId"],
			"properties": {
				"name": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[^\\x00-\\x1f\\x7f-\\x9f]*$"},
				"categoryId": {
					"type": "integer", "format": "int64",
					"minimum": -9223372036854775808, "maximum": 9223372036854775807
				},
				"status": {"$ref": "#/components/schemas/PetStatus"}
			}
		}
	}}
}`

type Status string

type NewPet struct {
	Name       string `json:"name"`
	CategoryID int64  `json:"categoryId"`
	Status     Status `json:"status,omitempty"`
}

func newPetBody(t testing.TB, o jsonbody.Options) *jsonbody.Body[NewPet] {
	t.Helper()
	b, err := jsonbody.New[NewPet]([]byte(openAPI), "#/components/schemas/NewPet", o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return b
}

// bodyOf compiles a schema by itself.
func bodyOf[T any](t testing.TB, schema string, o jsonbody.Options) *jsonbody.Body[T] {
	t.Helper()
	b, err := jsonbody.New[T]([]byte(schema), "#", o)
	if err != nil {
		t.Fatalf("New with schema %s: %v", schema, err)
	}
	return b
}

// refusal returns the error as what is sent to the client.
func refusal(t testing.TB, err error) *apierror.Error {
	t.Helper()
	e, ok := errors.AsType[*apierror.Error](err)
	if !ok {
		t.Fatalf("got error %v, want an *apierror.Error", err)
	}
	return e
}

// post is a request to create a pet, as a client sends it.
func post(body string, header ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/v1/pets", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}
