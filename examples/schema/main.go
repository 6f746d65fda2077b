// Schema is a service that checks the bodies of requests against its OpenAPI document,
// and answers every error in one envelope.
//
//	go run ./examples/schema
//	curl -H 'Content-Type: application/json' -d '{"name":"Rex","kind":"dog","age":3}' http://127.0.0.1:8081/pets
//	curl -H 'Content-Type: application/json' -d '{"name":"","Kind":"dog","age":1.5}' http://127.0.0.1:8081/pets
//
// jsonbody.New refuses a type that cannot hold what the schema allows, and fields that the
// schema does not describe. A client that prefers application/problem+json gets each mistake
// with its place.
package main

import (
	_ "embed"
	"fmt"
	"log"
	"net/http"
	"sync"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/jsonbody"
)

// openAPI is what the service publishes, and what it enforces.
//
//go:embed openapi.json
var openAPI []byte

// newPet is the schema NewPet of the document.
type newPet struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	Age  *int   `json:"age"` // nil if it was not sent
}

var errTaken = apierror.New(http.StatusConflict, "name_taken", "There is a pet with this name.")

func main() {
	handler, err := newHandler()
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: "127.0.0.1:8081", Handler: handler, ReadTimeout: 10 * time.Second}
	log.Printf("listening on http://%s/pets", server.Addr)
	log.Fatal(server.ListenAndServe())
}

func newHandler() (http.Handler, error) {
	body, err := jsonbody.New[newPet](openAPI, "#/components/schemas/NewPet", jsonbody.Options{MaxBytes: 4 << 10})
	if err != nil {
		return nil, err // the type and the schema do not fit each other
	}
	var mu sync.Mutex
	pets := map[string]newPet{}

	errs := &apierror.Responder{RequestID: middleware.RequestIDFrom}
	mux := http.NewServeMux()
	mux.Handle("POST /pets", errs.Handle(func(w http.ResponseWriter, r *http.Request) error {
		pet, err := body.Decode(w, r)
		if err != nil {
			return err // 400, 413 or 415, and what exactly is wrong
		}
		mu.Lock()
		defer mu.Unlock()
		if _, ok := pets[pet.Name]; ok {
			return errTaken
		}
		pets[pet.Name] = pet
		w.WriteHeader(http.StatusCreated)
		_, err = fmt.Fprintf(w, "%s is a %s\n", pet.Name, pet.Kind)
		return err
	}))
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(openAPI) // an error means that the client has disconnected
	})
	return middleware.Chain(errs.Mux(mux), middleware.RequestID, middleware.Recover(errs)), nil
}
