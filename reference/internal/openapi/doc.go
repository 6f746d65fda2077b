// Package openapi holds the OpenAPI 3.1 document of the service, openapi.json,
// which is the only source of the schema of request bodies and of the bounds of
// parameters. Tests check every response against it.
//
//	doc, err := openapi.New(map[string]deprecation.Notice{"getPet": {Since: since, Sunset: sunset}})
//	...
//	newPet, err := jsonbody.New[NewPet](doc.JSON(), openapi.NewPetSchema, jsonbody.Options{})
//	limit := doc.Limit()
package openapi
