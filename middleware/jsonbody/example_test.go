package jsonbody_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/jsonbody"
)

// The schema is the one that the service publishes in its OpenAPI document.
func Example() {
	newPet, err := jsonbody.New[NewPet]([]byte(openAPI), "#/components/schemas/NewPet", jsonbody.Options{})
	if err != nil {
		log.Fatal(err)
	}
	var errs apierror.Responder
	createPet := errs.Handle(func(w http.ResponseWriter, r *http.Request) error {
		pet, err := newPet.Decode(w, r)
		if err != nil {
			return err
		}
		w.WriteHeader(http.StatusCreated)
		return json.NewEncoder(w).Encode(pet)
	})

	for _, body := range []string{
		`{"name": "Rex", "categoryId": 1e2, "status": "sold"}`,
		`{"name": "Rex", "CategoryID": 100}`,
		`{"name": "Rex", "categoryId": 100, "categoryId": 200}`,
	} {
		r := httptest.NewRequest(http.MethodPost, "/v1/pets", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		createPet.ServeHTTP(w, r)
		fmt.Print(w.Code, " ", w.Body)
	}
	// Output:
	// 201 {"name":"Rex","categoryId":100,"status":"sold"}
	// 400 {"code":"invalid_body","message":"The request body is not valid: /categoryId is required.","status":400}
	// 400 {"code":"invalid_body","message":"The request body is not valid: /categoryId occurs more than once.","status":400}
}

// Every member at fault has a JSON Pointer. A Responder shows them to clients that
// accept application/problem+json.
func ExampleBody_Parse() {
	type order struct {
		Items []struct {
			PetID int64 `json:"petId"`
			Count int   `json:"count"`
		} `json:"items"`
	}
	const schema = `{
		"type": "object",
		"required": ["items"],
		"properties": {"items": {"type": "array", "minItems": 1, "items": {
			"type": "object",
			"required": ["petId"],
			"properties": {"petId": {"type": "integer"}, "count": {"type": "integer", "minimum": 1}}
		}}}
	}`
	body, err := jsonbody.New[order]([]byte(schema), "#", jsonbody.Options{})
	if err != nil {
		log.Fatal(err)
	}

	_, err = body.Parse([]byte(`{"items": [{"petId": 1}, {"count": 0}, {"petId": "3"}]}`))
	var e *apierror.Error
	if errors.As(err, &e) {
		for _, d := range e.Details {
			fmt.Println(d.Pointer, d.Detail)
		}
	}
	// Output:
	// /items/1/count must be at least 1
	// /items/1/petId is required
	// /items/2/petId must be an integer
}

// A mistake in the type is found when the program starts, not by its clients.
func ExampleNew() {
	type comment struct {
		Text    string    `json:"text"`
		Replies []comment `json:"replies"`
	}
	const schema = `{
		"type": "object",
		"required": ["text"],
		"properties": {
			"text": {"type": "string"},
			"score": {"type": ["integer", "null"]},
			"replies": {"type": "array", "items": {"$ref": "#"}}
		}
	}`
	comments, err := jsonbody.New[comment]([]byte(schema), "#", jsonbody.Options{})
	if err != nil {
		log.Fatal(err)
	}
	c, err := comments.Parse([]byte(`{"text": "Good dog", "replies": [{"text": "Indeed", "score": 3}]}`))
	fmt.Println(c, err)

	type scored struct {
		comment        // its fields are those of scored, as in encoding/json
		Score   string `json:"score"`
	}
	_, err = jsonbody.New[scored]([]byte(schema), "#", jsonbody.Options{})
	fmt.Println(err)
	// Output:
	// {Good dog [{Indeed []}]} <nil>
	// jsonbody: jsonbody_test.scored: field Score: type string cannot hold the values of the schema, which must be a number or null
}
