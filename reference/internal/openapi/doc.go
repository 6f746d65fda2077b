// Package openapi holds the OpenAPI 3.1 document of the service, openapi.json,
// which is the one source of what it says: the schema that request bodies are
// checked against and the bounds of the parameters are read from it, and tests
// hold every response against it.
//
//	doc, err := openapi.New(map[string]deprecation.Notice{"getPet": {Since: since, Sunset: sunset}})
//	...
//	newPet, err := jsonbody.New[NewPet](doc.JSON(), openapi.NewPetSchema, jsonbody.Options{})
//	limit := doc.Limit()
package openapi
