// Package docpage makes the page on which people read and try the API, from its OpenAPI
// document.
//
//	files, err := docpage.New(document.JSON(), "/docs")
//	for _, f := range files {
//		handle(f.Path, f.ContentType, f.Body) // with webpage.Policy
//	}
//
// The text of the page is HTML that the server renders once, so it reads without
// scripts too. A script adds what is alive: it sends requests with the key that the
// reader types in, which it keeps in memory only, and explains the answers, above all
// the rate limits.
//
// Each operation has a chapter with its operationId as anchor: /docs#getPet.
//
// An interface such as Swagger UI would be 1.5 MB in the binary. It needs evaluated
// code (new Function), which [webpage.Policy] forbids, and knows neither limits, bans
// nor dates of deprecations.
package docpage
